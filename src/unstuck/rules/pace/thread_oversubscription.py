"""thread-oversubscription: each worker computes with several threads, far more in total than there are cores.

What it sees
    The workers run several threads each, together at least half as many again as there are cores; the run fills the
    cores by itself, its threads wait in the run queue, and the training waits for data.

Why it matters
    Threads that wait for each other are scheduled out while others spin, and batches come late. Several workers need no
    threads of their own: they are the parallelism.

Evidence
    Threads that ran in each worker, workers, cores; the time that threads were ready to run and had no core.

Fix
    One thread per worker: `torch.set_num_threads(1)` in a `worker_init_fn` (torch does this itself unless the script
    sets it again), `OMP_NUM_THREADS=1`, `cv2.setNumThreads(0)`.

When it is wrong
    If other processes use up the machine, this rule is silent.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.rules.pace.loader_waits import cores_text, crowded, late, line_text, starving, times
from unstuck.rules.rule import Rule

MIN_THREADS_PER_WORKER = 1.5
MIN_THREADS_PER_CORE = 1.5


def decide(case: Case) -> Iterable[Finding]:
    wait = starving(case)
    if wait is None or not wait.workers:
        return
    strain, fetchers = wait.strain, wait.strain.fetchers
    threads = sum(fetcher.threads for fetcher in fetchers)
    if threads < max(1.0, MIN_THREADS_PER_WORKER * len(fetchers), MIN_THREADS_PER_CORE * strain.cores):
        return
    if not crowded(strain):
        return
    yield RULE.finding(
        severity="warning",
        confidence=0.85,
        title=f"{wait.workers} workers compute with {threads} threads on {strain.cores:.3g} cores, and the training "
        f"waits for data {wait.share:.0%} of the time",
        evidence=(
            f"threads that ran in a worker: {', '.join(str(fetcher.threads) for fetcher in fetchers)}; they had no "
            f"core {late(strain):.0%} of the time they had work",
            cores_text(strain),
            wait.lost_text,
            line_text(wait.hot) if wait.hot is not None else "",
            f"up to {times(1 / max(0.01, 1 - wait.share))} as fast if batches came in time",
        ),
        where=wait.where(wait.hot),
        fix="Let each worker compute with one thread: torch.set_num_threads(1) in a worker_init_fn (and nothing in "
        "the dataset that raises it again), OMP_NUM_THREADS=1 for numpy, cv2.setNumThreads(0).",
        seen_by="kernel",
    )


RULE = Rule(
    "thread-oversubscription",
    "pace",
    decide,
    explains=frozenset({"starved-for-data", "too-many-workers", "too-few-workers"}),
    gathers=True,
)
