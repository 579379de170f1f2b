"""duplicate-samples-across-workers: every worker gives the same samples.

What it sees
    An IterableDataset with several workers: within one pass, samples come again from another worker.

Why it matters
    It does not, but an epoch has each sample once per worker: it takes that many times as long, and neighbouring
    batches are copies of each other.

Evidence
    How many of the samples looked at in this pass had already come from another worker (compared by their bytes), the
    number of workers, and the stream's own length where it has one.

Fix
    Give each worker its own part in `__iter__`, by `torch.utils.data.get_worker_info()`.

When it is wrong
    Replication on purpose. Where `__iter__` asks which worker it is in, it is information only; where each worker
    changes the samples in its own way, they are not the same and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.loaders import Repeats
from unstuck.rules.loader_reports import LoaderReport, latest
from unstuck.rules.rule import Rule

ENOUGH = 32
"""Samples that came from another worker before."""
LEAST = 0.05
"""Share of the samples looked at; shuffled streams meet only by and by."""


def decide(case: Case) -> Iterable[Finding]:
    for about in latest(case, case.repeats):
        state = about.state
        workers, other = state.workers, state.other
        if not state.iterable or workers < 2 or other < max(ENOUGH, LEAST * state.rows):
            continue
        if state.own * (workers - 1) * 4 > other:
            continue  # the data repeats within each worker too: then it is the data itself
        yield RULE.finding(
            severity="info" if about.settings.asks_worker else "warning",
            confidence=0.95,
            title=f"all {workers} workers give the same samples: each comes {workers} times in an epoch",
            evidence=(
                f"of {state.rows:,} samples looked at in the first {state.batches:,} batches of a pass, "
                f"{other:,} had already come from another worker, byte for byte the same",
                f"within one worker {state.own or 'none'} of them came twice: it is not the data that repeats",
                *_length(about),
            ),
            where=about.where(about.settings.dataset_site),
            fix=Fix(
                f"In {about.dataset}.__iter__, give each worker its own part: `info = "
                "torch.utils.data.get_worker_info()`, then every info.num_workers-th sample from info.id on."
            ),
            seen_by="flight",
        )


def _length(about: LoaderReport[Repeats]) -> tuple[str, ...]:
    samples = about.settings.samples
    if not samples:
        return ()
    return (f"the data set says it has {samples:,} samples; a pass gives about {samples * about.state.workers:,}",)


RULE = Rule("duplicate-samples-across-workers", "loop", decide)
