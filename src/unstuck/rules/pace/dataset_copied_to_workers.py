"""dataset-copied-to-workers: every worker gets a copy of the data set.

What it sees
    Under spawn and forkserver the data set is pickled for each worker: the size of the pickle, and the time it took.
    Under fork the workers share the parent's memory at first: pages that became their own while the shared ones
    became fewer, without anything having been written on purpose (reading a Python object counts its references, and
    that is a write).

Why training stops
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
from typing import Any

from unstuck.model import Case, Finding, Fix, Where
from unstuck.rules.death.sizes import size
from unstuck.rules.pace.measured import COSTLY, Waiting, loaders, times, waits
from unstuck.rules.pace.workers_restart_every_epoch import restarting
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

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
    lost = max(restarting(waiting), float(waiting["pickling"]))
    whole = max(waiting.seconds, float(waiting["since_first"]))
    large = waiting["pickled"] >= LARGE and lost >= LEAST and lost >= COSTLY * whole
    return large and waiting["pickling"] >= MOSTLY * waiting["opening"] and waiting["pickling"] >= MOSTLY * lost / 2


def _slow(waiting: Waiting) -> Finding:
    whole = max(waiting.seconds, float(waiting["since_first"]))
    lost = max(restarting(waiting), float(waiting["pickling"]))
    share = lost / whole
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="warning",
        confidence=0.9,
        title=f"{size(waiting['pickled'])} of data set are copied to each of {waiting.workers} workers, which takes "
        f"{share:.0%} of the time",
        evidence=(
            f"the pickle that each worker is started with has {size(waiting['pickled'])}; making them took "
            f"{seconds(waiting['pickling'])} over {waiting['passes']:,} passes",
            f"starting workers took {seconds(lost)} of {seconds(whole)} in all",
            f"{times(1 / max(0.05, 1 - share))} as fast if there were nothing to copy",
        ),
        where=waiting.where(None, "none"),
        fix=Fix(_advice(once=waiting["passes"] < 2)),
        seen_by="flight",
    )


def _large(case: Case) -> Iterable[Finding]:
    """A copy that costs memory only."""
    settings = {(about.fact.pid, about.settings.get("number", -1)): about for about in loaders(case)}
    for fact in case.facts:
        data: dict[str, Any] = fact.data
        if fact.kind != "workers" or data.get("pickled", 0) * len(data["pids"]) < HUGE:
            continue
        about = settings.get((fact.pid, data.get("number", -1)))
        yield Finding(
            rule=RULE.name,
            family=RULE.family,
            severity="info",
            confidence=0.9,
            title=f"each of {len(data['pids'])} workers has its own copy of the data set, {size(data['pickled'])}",
            evidence=(
                f"the pickle that each worker is started with has {size(data['pickled'])}: "
                f"{size(data['pickled'] * len(data['pids']))} in all",
                f"making them took {seconds(data['pickling'])}",
            ),
            where=about.where() if about is not None else Where(pid=fact.pid),
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
    about = next(iter(loaders(case)), None)
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
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
        where=about.where("dataset_site") if about is not None else Where(pid=most.pid),
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
