"""thread-oversubscription: each worker computes with several threads, far more in all than there are processors.

What it sees
    The workers run several threads each, together half as many again as there are processors or more; the run fills
    the processors by itself, its threads wait in the run queue, and the training waits for data.

Why it matters
    It crawls: threads that wait for each other are put aside while others spin. Several workers need no threads of
    their own: they are the parallelism.

Evidence
    Threads that ran in each worker, workers, processors; the time that threads were ready and had no processor.

Fix
    One thread a worker: `torch.set_num_threads(1)` in a `worker_init_fn` (torch does this itself unless the script
    sets it again), `OMP_NUM_THREADS=1`, `cv2.setNumThreads(0)`.

When it is wrong
    Where other processes use the machine up nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.pace.crowding import crowded, late, threads
from unstuck.rules.pace.measured import machine, starving, times
from unstuck.rules.pace.starved_for_data import described, hot_line
from unstuck.rules.rule import Rule

EACH = 1.5
FAR = 1.5
"""Threads a processor, from which on they are too many."""


def decide(case: Case) -> Iterable[Finding]:
    waiting = starving(case)
    strain = waiting.strain if waiting is not None else None
    if waiting is None or strain is None or not waiting.workers or threads(strain) < EACH:
        return
    total = sum(f.threads for f in strain.fetchers)
    if total < FAR * strain.cores or not crowded(strain):
        return
    hot = hot_line(waiting)
    yield RULE.finding(
        severity="warning",
        confidence=0.85,
        title=f"{waiting.workers} workers compute with {total} threads on {strain.cores:.3g} processors, and the "
        f"training waits for data {waiting.share:.0%} of the time",
        evidence=(
            f"threads that ran in a worker: {', '.join(str(f.threads) for f in strain.fetchers)}; they were ready "
            f"and had no processor {late(strain):.0%} of the time they had work",
            machine(strain),
            waiting.lost,
            *([described(hot)] if hot is not None else []),
            f"up to {times(1 / max(0.01, 1 - waiting.share))} as fast if batches came in time",
        ),
        where=waiting.where(hot),
        fix=Fix(
            "Let each worker compute with one thread: torch.set_num_threads(1) in a worker_init_fn (and nothing in "
            "the data set that raises it again), OMP_NUM_THREADS=1 for numpy, cv2.setNumThreads(0)."
        ),
        seen_by="kernel",
    )


RULE = Rule(
    "thread-oversubscription",
    "pace",
    decide,
    explains=frozenset(("starved-for-data", "too-many-workers", "too-few-workers")),
    gathers=True,
)
