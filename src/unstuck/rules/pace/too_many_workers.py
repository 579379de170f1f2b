"""too-many-workers: the workers cost more than they give.

What it sees
    The training waits for batches while its workers rest: handing them over takes longer than making them. Or, as
    information, more workers compute than there are processors that the run may use (affinity and cgroup quota
    counted), they keep these full by themselves, and the training process is ready to run a tenth of the time or more
    without getting one.

Why it matters
    It crawls: it waits for what it could have made itself in less time; or its own steps wait in one queue with all
    those workers.

Evidence
    How long a batch takes to make, and how long it is waited for; or workers and processors, how long both waited in
    the run queue, and who else used the processors. The second is no proof of a loss: where all the work is needed,
    fewer workers do it no faster, and trainings were measured that took as long with one worker as with eight.

Fix
    Set `num_workers` to 0 where batches are quickly made; else let `unstuck tune` measure whether fewer are better.

When it is wrong
    Workers that mostly wait for a disk or a network may well be more than the processors; of them nothing is said, nor
    of a machine that others use too. Where processors are full and the training waits for data as well, there are
    simply too few of them: then what makes the batches dear is the finding.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Strain, Where
from unstuck.rules.pace.crowding import crowded, late, threads
from unstuck.rules.pace.measured import COSTLY, Waiting, first_gone_through, machine, starving, times
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

WORTH = 1.1
"""Times as fast it must become without workers."""
ONE = 1.5
"""Threads a worker, below which it is the workers that are too many and not their threads."""


def decide(case: Case) -> Iterable[Finding]:
    waiting = starving(case)
    if waiting is not None:
        yield from _in_vain(waiting)
        return
    strain = next((strain for strain in reversed(case.strains) if too_many(strain)), None)
    if strain is None:
        return
    workers = len(strain.fetchers)
    yield RULE.finding(
        severity="info",
        confidence=0.8,
        title=f"{workers} workers keep {strain.cores:.3g} processors full: the training waits {strain.delayed:.0%} of "
        "the time for one",
        evidence=(
            f"ready to run and without a processor: the workers {late(strain):.0%} of the time they had work, the "
            f"training process {strain.delayed:.0%} of all time",
            machine(strain),
        ),
        where=_loader(case, strain),
        fix=Fix(
            "Make the work on a sample less, or use more processors; `unstuck tune` measures whether fewer workers "
            "are better."
        ),
        seen_by="kernel",
    )


def _in_vain(waiting: Waiting) -> Iterable[Finding]:
    """The training waits though its workers rest: it would be faster without them."""
    strain = waiting.strain
    if strain is None or not waiting.idle_workers or waiting.busy_machine or not waiting.fetched:
        return
    gain = waiting.faster(waiting.fetched, 0)
    if gain < WORTH:
        return
    waited = waiting.state.waited / max(1, waiting.state.drawn)
    yield RULE.finding(
        severity="warning",
        confidence=0.8,
        title=f"handing batches over takes longer than making them: the training waits {waiting.share:.0%} of the "
        "time, and its workers rest",
        evidence=(
            waiting.lost,
            f"a worker makes a batch in {seconds(waiting.fetched)} and is at it {waiting.busy:.0%} of the time; the "
            f"training waits {seconds(waited)} for each and works on it for {seconds(waiting.between)}",
            machine(strain),
            f"{times(gain)} as fast if the training made its batches itself",
        ),
        where=waiting.loop,
        fix=Fix("Set num_workers=0 there, or make the batches larger; `unstuck tune` measures which is best."),
        seen_by="flight",
    )


def too_many(strain: Strain) -> bool:
    if len(strain.fetchers) <= strain.cores or threads(strain) >= ONE:
        return False
    return crowded(strain) and strain.delayed >= COSTLY


def _loader(case: Case, strain: Strain) -> Where:
    """The loader that has so many workers."""
    own = [about for about in case.loaders if about.pid == strain.pid]
    own.sort(key=lambda about: about.num_workers != len(strain.fetchers))
    return first_gone_through(own[0]) if own else Where(pid=strain.pid)


RULE = Rule("too-many-workers", "pace", decide, explains=frozenset(("starved-for-data",)), gathers=True)
