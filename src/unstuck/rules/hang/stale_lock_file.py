"""stale-lock-file: waiting for a lock file that nobody holds.

What it sees
    A loop keeps testing whether a lock file is gone (or tries to create it exclusively), sleeping in between, and no
    living process has anything to do with that file.

Why it matters
    A lock file is a promise to delete it. Whoever created it was killed first, so the file stays and the loop waits
    forever.

Evidence
    The path, its age, the pid written in it and that no such process lives, and that nobody has it open.

Fix
    Delete the file; then use a lock that the kernel releases when its holder exits (`fcntl.flock`).

When it is wrong
    The creator may be on another machine that shares the folder. Then the pid in the file means nothing here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from unstuck.model import Case, Finding, PathFact
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.hang.work import culprit_frame, polled_path, target_fact
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, seconds

MIN_ATTEMPTS = 3  # to open the same file within one sample, for a loop whose source could not be read


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
        yield still.finding(
            RULE,
            confidence=0.95 if orphan else 0.75,
            title=f"{still.who} is waiting for the lock file {name} to go away, and nobody will delete it",
            evidence=(
                f"{still.who} has been testing for it again and again for {still.lasting}, at {place(frame)}",
                *_facts(fact),
            ),
            where=still.where(frame),
            fix=f"Delete {name}; then use fcntl.flock instead of the file's existence: the kernel releases it.",
        )


def _lock_file(still: Standstill, expression: str) -> PathFact | None:
    """The file in question: the one last tried if it exists and looks like one, else one named in the loop."""
    fact, flight = target_fact(still), still.flight
    tested = expression or (flight is not None and flight.attempts >= MIN_ATTEMPTS)
    if fact is not None and fact.exists and tested and _lock_like(fact.path):
        return fact
    return next((f for f in still.case.paths if expression and f.expression == expression and f.exists), None)


def _lock_like(path: str) -> bool:
    """Named as lock files are named."""
    name = os.path.basename(path).lower()
    return "lock" in name or name.endswith((".pid", ".lck", ".busy"))


def _facts(fact: PathFact | None) -> Iterable[str]:
    if fact is None:
        yield "which file that is could not be read from outside"
        return
    if fact.age is not None:
        yield f"the file was last written {seconds(fact.age)} ago"
    if fact.text_pid is not None:
        yield f"pid {fact.text_pid} is written in it; that process is {'alive' if fact.pid_alive else 'not alive'}"
    yield "no process here has it open" if not fact.users else f"open in pid {', '.join(map(str, fact.users))}"


RULE = Rule("stale-lock-file", "hang", decide, disproved_by_end=True)
