"""waits-on-input: somebody should type an answer.

What it sees
    The main process, or a child it waits for, reads standard input.

Why it matters
    In a job, under nohup or in a container nobody sees the question, and the read waits forever.

Evidence
    The line that reads, and what standard input is here.

Fix
    Ask before the long work begins, take the answer from an argument, or give the child `stdin=DEVNULL`.

When it is wrong
    At a terminal a person may simply be thinking: then it is information. Debugger prompts are never reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.rules.hang.standstill import standstills
from unstuck.rules.hang.waiting import reads_input
from unstuck.rules.rule import Rule
from unstuck.rules.words import place


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        at_terminal = case.stdin == "terminal" or still.kind == "terminal-read"
        if not reads_input(still.thread) or not (still.stall.suspect if at_terminal else still.long):
            continue
        source = "a terminal" if at_terminal else f"a {case.stdin or 'pipe'} on which nothing arrives"
        yield still.finding(
            RULE,
            severity="info" if at_terminal else "error",
            confidence=0.95,
            title=f"{still.who} is waiting for an answer on standard input",
            evidence=(
                f"{still.who} has been reading standard input for {still.lasting}, at {place(still.frame)}",
                f"standard input is {source}",
            ),
            fix="Take the answer from an argument or a default when nobody is there, or give the child "
            "stdin=subprocess.DEVNULL.",
        )


RULE = Rule("waits-on-input", "hang", decide, disproved_by_end=True)
