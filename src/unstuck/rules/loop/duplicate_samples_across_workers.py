"""duplicate-samples-across-workers: every worker gives the same samples.

What it sees
    An IterableDataset with several workers: within one pass, samples come again from another worker.

Why it matters
    An epoch has each sample once per worker: it takes that many times as long, and neighbouring batches are copies of
    each other.

Evidence
    How many of the samples compared in this pass had already come from another worker (by their bytes), the number of
    workers, and the stream's own length where it has one.

Fix
    Give each worker its own part in `__iter__`, by `torch.utils.data.get_worker_info()`.

When it is wrong
    Replication on purpose. Where `__iter__` looks at which worker it is in, it is information only; where each worker
    changes the samples in its own way, they are not the same and nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.loader_reports import latest
from unstuck.rules.rule import Rule

MIN_REPEATED = 32  # samples that came from another worker before
MIN_REPEATED_SHARE = 0.05  # of the samples compared: shuffled streams meet only gradually
MAX_OWN_SHARE = 0.25  # of the repeats that may be within one worker; more, and the data itself repeats


def decide(case: Case) -> Iterable[Finding]:
    for report in latest(case, case.repeats):
        state, samples = report.state, report.settings.samples
        workers, other = state.workers, state.other
        if not state.iterable or workers < 2 or other < max(MIN_REPEATED, MIN_REPEATED_SHARE * state.rows):
            continue
        if state.own * (workers - 1) > MAX_OWN_SHARE * other:
            continue
        yield RULE.finding(
            severity="info" if report.settings.asks_worker else "warning",
            confidence=0.95,
            title=f"{'both' if workers == 2 else f'all {workers}'} workers give the same samples: each comes {workers} "
            "times per epoch",
            evidence=(
                f"of {state.rows:,} samples compared in the first {state.batches:,} batches of a pass, "
                f"{other:,} had already come from another worker, byte for byte the same",
                f"within one worker {state.own or 'none'} of them came twice: it is not the data that repeats",
                f"the dataset's length is {samples:,} samples; a pass gives about {samples * workers:,}"
                if samples
                else "",
            ),
            where=report.where(report.settings.dataset_site),
            fix=Fix(
                f"In {report.dataset}.__iter__, give each worker its own part: `info = "
                "torch.utils.data.get_worker_info()`, then every info.num_workers-th sample from info.id on."
            ),
            seen_by="flight",
        )


RULE = Rule("duplicate-samples-across-workers", "loop", decide)
