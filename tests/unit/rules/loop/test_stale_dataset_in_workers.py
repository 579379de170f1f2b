"""stale-dataset-in-workers, on Cases made by hand."""

from __future__ import annotations

from unstuck.model import Case, Finding
from unstuck.recorder.records.loaders import (
    ChangedAttribute,
    ChangedDataset,
    LoaderSettings,
    WorkerDataset,
    WorkersStarted,
)
from unstuck.rules.loop import stale_dataset_in_workers

MAIN, FIRST, SECOND = 10, 11, 12
LOADER = LoaderSettings(pid=MAIN, number=0, dataset="Records", dataset_site=("/p/train.py", 9, "Records.__getitem__"))
STARTED = WorkersStarted(pid=MAIN, number=0, pids=[FIRST, SECOND])


def changed(*changes: ChangedAttribute, copies: tuple[WorkerDataset, ...] = ()) -> list[Finding]:
    dataset = ChangedDataset(pid=MAIN, number=0, dataset="Records", passes=3, changed=list(changes))
    case = Case(
        loaders=(LOADER,),
        workers_started=(STARTED,),
        changed_datasets=(dataset,),
        worker_datasets=copies,
    )
    return list(stale_dataset_in_workers.decide(case))


EPOCH = ChangedAttribute(name="epoch", then=0, now=2, read=True)


def test_workers_that_do_not_see_a_change() -> None:
    (found,) = changed(
        ChangedAttribute(name="hits", then=0, now=9),
        EPOCH,
        copies=(WorkerDataset(pid=FIRST, passes=2, state={"epoch": 0}), WorkerDataset(pid=99, passes=2)),
    )
    assert found.title == "The workers never see Records.epoch = 2: they still have 0"
    assert (found.where.line, found.where.pid) == (9, MAIN)
    assert "a worker (pid 11) has epoch = 0 in its own copy" in found.evidence


def test_what_a_worker_has_seen_or_nobody_reads_is_not_stale() -> None:
    assert not changed(EPOCH, copies=(WorkerDataset(pid=SECOND, passes=3, state={"epoch": 2}),))
    assert not changed(ChangedAttribute(name="hits", then=0, now=9))
    assert len(changed(EPOCH)) == 1


def test_without_records_nothing_is_said() -> None:
    assert not list(stale_dataset_in_workers.decide(Case()))
