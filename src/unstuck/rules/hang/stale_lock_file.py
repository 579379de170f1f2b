"""stale-lock-file: waiting for a lock file that nobody holds.

What it sees
    A loop sleeps and tests again and again whether a lock file is gone (or tries to create it exclusively), and
    no living process has anything to do with that file.

Why it matters
    A lock file is a promise to delete it. Whoever made it was killed before it could, so it stays for ever.

Evidence
    The path, its age, the pid written in it and that no such process lives, and that nobody has it open.

Fix
    Delete the file; then use a lock the kernel releases by itself (`fcntl.flock`), which dies with its holder.

When it is wrong
    The maker may be on another machine that shares the folder. Then the pid in the file means nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, PathFact
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.hang.trying import lock_like, polled_path, target_fact
from unstuck.rules.hang.work import culprit_frame
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, seconds, who


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        expression = polled_path(still)
        fact = _lock_file(still, expression)
        if not expression and fact is None:
            continue
        orphan = fact is not None and fact.pid_alive is False and not fact.users
        patient = still.stall.standing >= case.times.suspect or case.asked
        if not (orphan and patient) and not still.long:
            continue
        frame = next((f for f in still.thread.frames if f.polls), culprit_frame(still))
        name = fact.path if fact else expression
        yield RULE.finding(
            severity="error",
            confidence=0.95 if orphan else 0.75,
            title=f"waits for the lock file {name} to go away, and nobody is there to remove it",
            evidence=(
                f"{who(still.process)} has been testing for it again and again for {still.lasting}, at {place(frame)}",
                *_facts(fact),
            ),
            where=still.where(frame),
            fix=Fix(f"Delete {name}; then use fcntl.flock instead of a file's existence: the kernel releases it."),
            seen_by="kernel",
        )


def _lock_file(still: Standstill, expression: str) -> PathFact | None:
    """The file in question: the one last tried if it exists and looks like one, else one named in the loop."""
    fact = target_fact(still)
    if fact is not None and fact.exists and lock_like(fact.path) and (expression or _tries_often(still)):
        return fact
    return next((f for f in still.case.paths if expression and f.expression == expression and f.exists), None)


def _tries_often(still: Standstill) -> bool:
    flight = still.flight
    return flight is not None and flight.attempts >= 3


def _facts(fact: PathFact | None) -> list[str]:
    if fact is None:
        return ["which file that is could not be read from outside"]
    said = []
    if fact.age is not None:
        said.append(f"the file was last written {seconds(fact.age)} ago")
    if fact.text_pid is not None:
        lives = "lives" if fact.pid_alive else "is not alive"
        said.append(f"pid {fact.text_pid} is written in it; that process {lives}")
    said.append("no process here has it open" if not fact.users else f"open in pid {', '.join(map(str, fact.users))}")
    return said


RULE = Rule("stale-lock-file", "hang", decide, disproved_by_end=True)
