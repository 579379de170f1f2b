"""workers-take-turns: the workers wait for each other at a lock, so only one of them works at a time.

What it sees
    Several workers are making batches, and in nearly every snapshot all but one of them wait for a lock that processes
    share (a multiprocessing lock, a file lock), while the training waits for data.

Why it matters
    Four workers behind one lock are as fast as one worker, at the cost of four.

Evidence
    In how many snapshots at most one of them was working; the line that takes the lock, with its share of the stack
    samples; the time that is lost; how fast the workers could be without it.

Fix
    Hold the lock only around what really must not happen twice at once, or give each worker a file, connection or
    reader of its own, opened in the worker.

When it is wrong
    If the thing behind the lock can serve only one (one tape, one camera), the lock is right and there are too many
    workers: the loss is real, the fix is another.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.rules.pace.loader_waits import LoaderWait, cores_text, line_text, mean, starving, times
from unstuck.rules.rule import Rule
from unstuck.text import spot


def decide(case: Case) -> Iterable[Finding]:
    wait = starving(case)
    if wait is None or not wait.takes_turns:
        return
    strain, workers, lock = wait.strain, len(wait.strain.fetchers), wait.strain.lock
    blocked = mean(fetcher.blocked for fetcher in strain.fetchers)
    at = f" at {spot(lock.file, lock.line)}" if lock is not None else ""
    yield RULE.finding(
        severity="warning",
        confidence=0.95 if lock is not None else 0.8,
        title=f"the workers take turns{at}: only one of {workers} makes a batch at a time, and the training waits "
        f"{wait.share:.0%} of the time",
        evidence=(
            f"in {strain.alone} of {strain.together} snapshots with two or more workers making a batch, at most one "
            f"was working; a worker waits for the lock {blocked:.0%} of the time",
            line_text(lock) if lock is not None else "",
            wait.lost_text,
            cores_text(strain),
            f"{times(_gain_without_lock(wait))} as fast if they did not wait for each other",
        ),
        where=wait.where(lock),
        fix=f"Hold the lock{f' {lock.takes}' if lock and lock.takes else ''} only around what must not happen twice "
        "at once, not around the whole sample; or open a file or connection of its own in each worker, and remove "
        "the lock.",
        seen_by="kernel",
    )


def _gain_without_lock(wait: LoaderWait) -> float:
    strain, workers = wait.strain, len(wait.strain.fetchers)
    busy = sum(fetcher.busy for fetcher in strain.fetchers)
    working = max(1e-9, busy - sum(fetcher.blocked for fetcher in strain.fetchers))
    cores_each = sum(fetcher.cpu for fetcher in strain.fetchers) / working
    room = max(1.0, (strain.cores - strain.others) / cores_each) if cores_each > 0.3 else workers
    return wait.gain(wait.making * working / busy * max(1.0, workers / room))


RULE = Rule("workers-take-turns", "pace", decide, explains=frozenset({"starved-for-data"}), gathers=True)
