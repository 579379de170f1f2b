"""too-many-workers: more workers than processors, and the training itself has to wait for one.

What it sees
    More workers compute than there are processors that the run may use (affinity and cgroup quota counted), they keep
    these full by themselves, and the training process is ready to run a tenth of the time or more without getting one.

Why training stops
    It crawls: each batch takes as many times longer as there are workers too many, and the training's own steps wait
    in the same queue.

Evidence
    Workers and processors; how long the workers and the training process waited in the run queue; who else used the
    processors.

Fix
    Set `num_workers` to the number of processors less one for the training.

When it is wrong
    Workers that mostly wait for a disk or a network may well be more than the processors; of them nothing is said. On
    a machine that others use too, nothing is said either.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.pace.crowding import crowded, late, threads
from unstuck.rules.pace.measured import COSTLY, machine, starving, times
from unstuck.rules.pace.starved_for_data import described, hot_line
from unstuck.rules.rule import Rule

ONE = 1.5
"""Threads a worker, below which it is the workers that are too many and not their threads."""


def decide(case: Case) -> Iterable[Finding]:
    waiting = starving(case)
    strain = waiting.strain if waiting is not None else None
    if waiting is None or strain is None or waiting.workers <= strain.cores or threads(strain) >= ONE:
        return
    if not crowded(strain) or strain.delayed < COSTLY:
        return
    wanted, hot = max(1, int(strain.cores) - 1), hot_line(waiting)
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="warning",
        confidence=0.8,
        title=f"{waiting.workers} workers on {strain.cores:.3g} processors are in each other's way, and in the "
        f"training's: it waits {strain.delayed:.0%} of the time for a processor",
        evidence=(
            f"ready to run and without a processor: the workers {late(strain):.0%} of the time they had work, the "
            f"training process {strain.delayed:.0%} of all time",
            machine(strain),
            waiting.lost,
            *([described(hot)] if hot is not None else []),
            f"up to {times(1 / (1 - min(0.9, strain.delayed)))} as fast if the training need not wait for a processor",
        ),
        where=waiting.where(None, "none"),
        fix=Fix(
            f"Set num_workers={wanted}: as many as there are processors, less one for the training; `unstuck tune` "
            "measures which number is best."
        ),
        seen_by="kernel",
        also=(waiting.where(hot),) if hot is not None else (),
    )


RULE = Rule("too-many-workers", "pace", decide, explains=frozenset(("starved-for-data",)), gathers=True)
