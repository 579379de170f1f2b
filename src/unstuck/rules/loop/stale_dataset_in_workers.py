"""stale-dataset-in-workers: the dataset was changed, and the workers do not see it.

What it sees
    With persistent workers, the main process changes an attribute of the dataset between passes; the workers still
    have the dataset as it was when they were started, and the code that makes samples reads that attribute.

Why it matters
    What the change was for (a new epoch's shuffling, a curriculum, an augmentation switched off) never happens: every
    epoch trains on the data of the first one.

Evidence
    The attribute's value in the main process and in the workers, in the same pass.

Fix
    Keep the value in shared memory (`torch.multiprocessing.Value`, a shared tensor), or do without persistent workers.

When it is wrong
    If the attribute is read only in the main process, by code that the sample path also mentions.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.loaders import ChangedAttribute, ChangedDataset, WorkerDataset
from unstuck.rules.loader_reports import first_of, settings_of
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    for dataset in {(dataset.pid, dataset.number): dataset for dataset in case.changed_datasets}.values():
        copies = _in_workers(case, dataset)
        change = next((change for change in dataset.changed if change.read and _is_stale(change, copies)), None)
        if change is None:
            continue
        name, then, now = change.name, change.then, change.now
        loader = settings_of(case, dataset.pid, dataset.number)
        copy = next((copy for copy in reversed(copies) if name in copy.state), None)
        yield RULE.finding(
            severity="warning",
            confidence=0.95,
            title=f"the workers never see {dataset.dataset}.{name} = {now!r}: they still have {then!r}",
            evidence=(
                f"in pass {dataset.passes} the main process has {name} = {now!r}; its persistent workers were "
                f"started with {name} = {then!r}",
                f"a worker (pid {copy.pid}) has {name} = {copy.state[name]!r} in its own copy" if copy else "",
                f"the code that makes the samples reads {name}",
            ),
            where=first_of(dataset.pid, None, loader.dataset_site, loader.site),
            fix=Fix(
                f"Keep {name} where all processes see it (`torch.multiprocessing.Value`, or a shared tensor), "
                "or set persistent_workers=False so that each epoch's workers start from the current dataset."
            ),
            seen_by="flight",
        )


def _in_workers(case: Case, dataset: ChangedDataset) -> list[WorkerDataset]:
    """The dataset as its workers have it."""
    mine = [each.pids for each in case.workers_started if (each.pid, each.number) == (dataset.pid, dataset.number)]
    return [copy for copy in case.worker_datasets if mine and copy.pid in mine[-1] and copy.passes > 1]


def _is_stale(change: ChangedAttribute, copies: list[WorkerDataset]) -> bool:
    """No worker has shown a value other than the one it was started with."""
    return all(copy.state[change.name] == change.then for copy in copies if change.name in copy.state)


RULE = Rule("stale-dataset-in-workers", "loop", decide)
