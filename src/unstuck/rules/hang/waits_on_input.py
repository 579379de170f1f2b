"""waits-on-input: somebody should type an answer.

What it sees
    The main process, or a child it waits for, reads standard input.

Why it matters
    In a job, under nohup or in a container nobody sees the question, and the read waits for ever.

Evidence
    The line that reads, and what standard input is here.

Fix
    Ask before the long work begins, take the answer from an argument, or give the child `stdin=DEVNULL`.

When it is wrong
    At a terminal a person may simply be thinking: then it is information. Debugger prompts are never reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        if not reads_input(still):
            continue
        at_terminal = case.stdin == "terminal" or still.kind == "terminal-read"
        if not (still.stall.suspect if at_terminal else still.long):
            continue
        where = "a terminal" if at_terminal else f"a {case.stdin or 'pipe'} from which nothing comes"
        frame = still.frame
        yield RULE.finding(
            severity="info" if at_terminal else "error",
            confidence=0.95,
            title=f"{who(still.process)} waits for an answer on standard input",
            evidence=(
                f"{who(still.process)} has been reading standard input for {still.lasting}, at {place(frame)}",
                f"standard input is {where}",
            ),
            where=still.where(frame),
            fix=Fix(
                "Take the answer from an argument or a default when nobody is there, or give the child "
                "stdin=subprocess.DEVNULL."
            ),
            seen_by="kernel",
        )


def reads_input(still: Standstill) -> bool:
    wait = still.thread.wait
    if wait is None:
        return False
    return wait.kind == "terminal-read" or (wait.fd == 0 and wait.kind in ("pipe-read", "socket", "file"))


RULE = Rule("waits-on-input", "hang", decide, disproved_by_end=True)
