"""dataset-copied-to-workers: every worker gets a copy of the data set.

What it sees
    Under spawn and forkserver the data set is pickled for each worker: the size of the pickle, and the time it took.
    Under fork the workers share the parent's memory at first: pages that became their own while the shared ones
    became fewer, without anything having been written on purpose (reading a Python object counts its references, and
    that is a write).

Why it matters
    It crawls where much is pickled at the start of every pass; memory fills up with one copy a worker.

Evidence
    Bytes and seconds of the pickle, workers, passes; or how much of the parent's memory each worker has copied.

Fix
    Keep what is large outside the Python objects of the data set: in a tensor (shared, not copied), a memory-mapped
    file (`numpy.memmap`, Arrow), or a file that each worker opens itself. `persistent_workers=True` copies once.

When it is wrong
    A copy that costs no time and fits into memory does no harm: then this is information.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Where
from unstuck.rules.pace.measured import COSTLY, Waiting, first_gone_through, times, waits
from unstuck.rules.pace.workers_restart_every_epoch import restarting
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds, size

LARGE = 10_000_000
"""Bytes of a pickle that are worth a word where it costs time,"""
HUGE = 250_000_000
"""and of all copies together where it does not."""
LEAST = 2.5
"""Seconds that must have been lost."""
MOSTLY = 0.3
"""Share of the start of the workers that pickling in the training process must take to be the cause of it."""


def decide(case: Case) -> Iterable[Finding]:
    for waiting in waits(case):
        if _costs(waiting):
            yield _slow(waiting)
            return
    yield from _large(case)
    yield from _read(case)


def _costs(waiting: Waiting) -> bool:
    """Making the pickle is a good part of what the start of the workers takes; undoing it in them is another."""
    state = waiting.state
    lost, whole = _lost(waiting)
    large = state.pickled >= LARGE and lost >= LEAST and lost >= COSTLY * whole
    return large and state.pickling >= MOSTLY * state.opening and state.pickling >= MOSTLY * lost / 2


def _lost(waiting: Waiting) -> tuple[float, float]:
    """Seconds that starting workers took, and of how many."""
    state = waiting.state
    return max(restarting(waiting), state.pickling), max(waiting.seconds, state.since_first)


def _slow(waiting: Waiting) -> Finding:
    state = waiting.state
    lost, whole = _lost(waiting)
    share = lost / whole
    return RULE.finding(
        severity="warning",
        confidence=0.9,
        title=f"{size(state.pickled)} of data set are copied to each of {waiting.workers} workers, which takes "
        f"{share:.0%} of the time",
        evidence=(
            f"the pickle that each worker is started with has {size(state.pickled)}; making them took "
            f"{seconds(state.pickling)} over {state.passes:,} passes",
            f"starting workers took {seconds(lost)} of {seconds(whole)} in all",
            f"{times(1 / max(0.05, 1 - share))} as fast if there were nothing to copy",
        ),
        where=waiting.loop,
        fix=Fix(_advice(once=state.passes < 2)),
        seen_by="flight",
    )


def _large(case: Case) -> Iterable[Finding]:
    """A copy that costs memory only."""
    settings = {(about.pid, about.number): about for about in case.loaders}
    for started in case.workers_started:
        copies = len(started.pids)
        if started.pickled * copies < HUGE:
            continue
        about = settings.get((started.pid, started.number))
        yield RULE.finding(
            severity="info",
            confidence=0.9,
            title=f"each of {copies} workers has its own copy of the data set, {size(started.pickled)}",
            evidence=(
                f"the pickle that each worker is started with has {size(started.pickled)}: "
                f"{size(started.pickled * copies)} in all",
                f"making them took {seconds(started.pickling)}",
            ),
            where=first_gone_through(about) if about is not None else Where(pid=started.pid),
            fix=Fix(_advice(once=True)),
            seen_by="flight",
        )
        return


def _read(case: Case) -> Iterable[Finding]:
    """Forked workers that read Python objects of the parent's, page by page."""
    copied = [
        each for each in case.copies if each.shared_before - each.shared >= each.private - each.private_before > 0
    ]
    grown = sum(each.private - each.private_before for each in copied)
    if grown < HUGE:
        return
    most = max(copied, key=lambda each: each.private - each.private_before)
    about = next(iter(case.loaders), None)
    yield RULE.finding(
        severity="info",
        confidence=0.8,
        title=f"reading the data set copies it: {len(copied)} forked workers have made {size(grown)} of the parent's "
        "memory their own",
        evidence=(
            f"worker pid {most.pid} began with {size(most.private_before)} of its own and "
            f"{size(most.shared_before)} shared with its parent; after {seconds(most.seconds)} it has "
            f"{size(most.private)} of its own and {size(most.shared)} shared",
            f"in all {size(grown)} more than at the start, in {len(copied)} workers",
        ),
        where=first_gone_through(about, about.dataset_site) if about is not None else Where(pid=most.pid),
        fix=Fix(_advice(once=True)),
        seen_by="kernel",
    )


def _advice(once: bool) -> str:
    again = "" if once else " persistent_workers=True at least copies it only once."
    return (
        "Keep what is large out of the data set's Python objects: in one tensor or array instead of a list (a tensor "
        "is shared, not copied), in a memory-mapped file, or in a file that each worker opens itself." + again
    )


RULE = Rule(
    "dataset-copied-to-workers", "pace", decide, explains=frozenset(("workers-restart-every-epoch",)), gathers=True
)
