"""shared-memory-full, on Cases made by hand: what a SIGBUS in a worker means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.rules.death.runs import said
from unstuck.model import Case, Crash, Exit, Flight, Frame, Thread
from unstuck.recorder.records.deaths import BatchFailed, Died, Measured, Raised, SharedMemory, WorkerExit
from unstuck.recorder.records.loaders import LoaderSettings
from unstuck.rules.death import shared_memory_full

MB = 1 << 20
SHARING = Frame("/venv/torch/storage.py", 9, "_new_shared")
COLLATE = Frame("/job/train.py", 20, "collate", user=True)
READING = Frame("/job/data.py", 7, "Rows.__getitem__", user=True)


def crashed(*frames: Frame, free: int = 1 * MB, batch: int = 4 * MB) -> Case:
    crash = Crash("SIGBUS", Thread(6, frames=frames))
    worker = Flight(6, role="worker", worker=0, alive=False, batch_bytes=batch, crash=crash)
    raised = Raised(type="RuntimeError", message="worker is gone")
    shm = SharedMemory(mount="/dev/shm", size=64 * MB, free=free, users=[(6, 60 * MB)])
    measured = Measured(shared_memory=shm)
    batch_failed = BatchFailed(
        pid=5, at=2.0, raised=raised, measured=measured, workers=[WorkerExit(worker=0, pid=6, exitcode=-7)]
    )
    return Case(
        outcome="died",
        root=5,
        exits=(Exit(5, code=1),),
        flights=(Flight(5, role="main", step=3, loaders=1), worker),
        loaders=(
            LoaderSettings(pid=5, number=0, num_workers=2, prefetch_factor=2, site=("/job/train.py", 30, "main")),
        ),
        deaths=(Died(pid=5, at=2.1, raised=raised),),
        batches_failed=(batch_failed,),
    )


def test_a_worker_that_shares_a_batch_without_space_for_it() -> None:
    (finding,) = shared_memory_full.decide(crashed(SHARING, COLLATE))
    assert finding.confidence == 0.97
    assert (finding.where.worker, finding.where.line) == (0, 20)
    assert "worker 0 (pid 6) died of SIGBUS" in finding.evidence[0]
    assert "mapped of it: worker 0 (pid 6) 60 MB" in finding.evidence
    assert "4 MB; 2 workers × 2 prefetched and the one in use are 5, 20 MB in total" in finding.evidence[3]
    assert finding.also[0].line == 30


def test_the_crash_is_beneath_it() -> None:
    assert said(crashed(SHARING, COLLATE)) == [("shared-memory-full", "error")]


@pytest.mark.parametrize(("frame", "free"), [(READING, 60 * MB), (SHARING, 60 * MB)], ids=["own-mapping", "room"])
def test_a_mapped_file_that_was_truncated(frame: Frame, free: int) -> None:
    assert said(crashed(frame, COLLATE, free=free)) == [("native-crash", "error")]


def test_a_batch_of_unknown_size_is_named_where_shared_memory_is_small() -> None:
    (finding,) = shared_memory_full.decide(crashed(SHARING, free=60 * MB, batch=0))
    assert finding.confidence == 0.7
    large = crashed(SHARING, free=60 * MB, batch=0)
    roomy = SharedMemory(mount="/dev/shm", size=4096 * MB, free=4000 * MB)
    failed = replace(large.batches_failed[0], measured=Measured(shared_memory=roomy))
    assert said(replace(large, batches_failed=(failed,))) == [("native-crash", "error")]
