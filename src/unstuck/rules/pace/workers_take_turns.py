"""workers-take-turns: the workers wait for each other at a lock, so that only one of them works at a time.

What it sees
    Several workers are making batches, and in nearly every look at them all but one wait for a lock that processes
    share (a multiprocessing lock, a file lock), while the training waits for data.

Why it matters
    It crawls: four workers behind one lock are one worker, with the cost of four.

Evidence
    In how many of the looks at most one of them was at work; the line that takes the lock, with its share of the
    samples; the time that is lost; what the workers could do without it.

Fix
    Take the lock only around what really must not happen twice at once, or give each worker a file, connection or
    reader of its own, opened in the worker.

When it is wrong
    Where the thing behind the lock can serve only one (one tape, one camera), the lock is right and the workers are
    too many: the loss is real, the fix is another.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, HotLine
from unstuck.rules.pace.measured import Waiting, machine, mean, spot, starving, times
from unstuck.rules.pace.starved_for_data import described
from unstuck.rules.rule import Rule

LOOKS = 10
ALONE = 0.85
BLOCKED = 0.25
"""Share of the looks in which a worker waits for the lock, on average."""


def decide(case: Case) -> Iterable[Finding]:
    waiting = starving(case)
    if waiting is None or not take_turns(waiting):
        return
    lock = _lock(waiting)
    yield RULE.finding(
        severity="warning",
        confidence=0.95 if lock is not None else 0.8,
        title=f"the workers take turns{f' at {spot(lock)}' if lock else ''}: only one of {_count(waiting)} makes a "
        f"batch at a time, and the training waits {waiting.share:.0%} of the time",
        evidence=tuple(_evidence(waiting, lock)),
        where=waiting.where(lock),
        fix=Fix(
            f"Hold the lock{f' {lock.takes}' if lock and lock.takes else ''} only around what must not happen twice "
            "at once, not around the whole sample; or open a file or connection of its own in each worker, and take "
            "the lock out."
        ),
        seen_by="kernel",
    )


def take_turns(waiting: Waiting) -> bool:
    strain = waiting.strain
    if strain is None or len(strain.fetchers) < 2 or strain.together < LOOKS:
        return False
    return strain.alone >= ALONE * strain.together and mean(f.blocked for f in strain.fetchers) >= BLOCKED


def _count(waiting: Waiting) -> int:
    return len(waiting.strain.fetchers) if waiting.strain else 0


def _lock(waiting: Waiting) -> HotLine | None:
    strain = waiting.strain
    return None if strain is None else strain.lock


def _evidence(waiting: Waiting, lock: HotLine | None) -> Iterable[str]:
    strain = waiting.strain
    if strain is None:
        return
    blocked = mean(f.blocked for f in strain.fetchers)
    yield (
        f"in {strain.alone} of {strain.together} looks at two or more workers that were making a batch, at most one "
        f"was at work; a worker waits for the lock {blocked:.0%} of the time"
    )
    if lock is not None:
        yield described(lock)
    yield waiting.lost
    yield machine(strain)
    busy = sum(f.busy for f in strain.fetchers)
    alone = max(1e-9, busy - sum(f.blocked for f in strain.fetchers))
    computing = sum(f.cpu for f in strain.fetchers) / alone  # processors that one worker at work keeps busy
    room = max(1.0, (strain.cores - strain.others) / computing) if computing > 0.3 else len(strain.fetchers)
    gain = waiting.faster(waiting.making * alone / busy * max(1.0, len(strain.fetchers) / room))
    yield f"{times(gain)} as fast if they did not wait for each other"


RULE = Rule("workers-take-turns", "pace", decide, explains=frozenset(("starved-for-data",)), gathers=True)
