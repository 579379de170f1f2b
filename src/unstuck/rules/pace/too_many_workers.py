"""too-many-workers: more workers than processors, and the training itself has to wait for one.

What it sees
    More workers compute than there are processors that the run may use (affinity and cgroup quota counted), they keep
    these full by themselves, and the training process is ready to run a tenth of the time or more without getting one.

Why training stops
    It crawls: the training's own steps wait in one queue with all those workers, while batches pile up.

Evidence
    Workers and processors; how long the workers and the training process waited in the run queue; who else used the
    processors.

Fix
    Set `num_workers` to the number of processors less one for the training.

When it is wrong
    Workers that mostly wait for a disk or a network may well be more than the processors; of them nothing is said, nor
    of a machine that others use too. Where the training waits for data as well, the processors are simply not enough:
    then this is information, and what makes the batches dear is the finding.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Strain, Where
from unstuck.rules.pace.crowding import crowded, late, threads
from unstuck.rules.pace.measured import COSTLY, loaders, machine, starving, times
from unstuck.rules.rule import Rule

ONE = 1.5
"""Threads a worker, below which it is the workers that are too many and not their threads."""


def decide(case: Case) -> Iterable[Finding]:
    strain = next((strain for strain in reversed(case.strains) if too_many(strain)), None)
    if strain is None:
        return
    workers, wanted = len(strain.fetchers), max(1, int(strain.cores) - 1)
    starved = starving(case) is not None
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="info" if starved else "warning",
        confidence=0.8,
        title=f"{workers} workers on {strain.cores:.3g} processors are in the training's way: it waits "
        f"{strain.delayed:.0%} of the time for a processor",
        evidence=(
            f"ready to run and without a processor: the workers {late(strain):.0%} of the time they had work, the "
            f"training process {strain.delayed:.0%} of all time",
            machine(strain),
            f"up to {times(1 / (1 - min(0.9, strain.delayed)))} as fast if the training had a processor of its own",
        ),
        where=_loader(case, strain),
        fix=Fix(
            f"Set num_workers={wanted}: as many as there are processors, less one for the training; `unstuck tune` "
            "measures which number is best."
        ),
        seen_by="kernel",
    )


def too_many(strain: Strain) -> bool:
    if len(strain.fetchers) <= strain.cores or threads(strain) >= ONE:
        return False
    return crowded(strain) and strain.delayed >= COSTLY


def _loader(case: Case, strain: Strain) -> Where:
    """The loader that has so many workers."""
    own = [about for about in loaders(case) if about.fact.pid == strain.pid]
    own.sort(key=lambda about: about.settings.get("num_workers") != len(strain.fetchers))
    return own[0].where() if own else Where(pid=strain.pid)


RULE = Rule("too-many-workers", "pace", decide, gathers=True)
