"""disk-full, on Cases made by hand: which error says so, and of which file system."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from tests.unit.rules.death.runs import said
from unstuck.model import Case, Exit, Flight
from unstuck.recorder.records.deaths import Died, FileSystem, Measured, Raised, SampleFailed, SampleInWork

FULL = FileSystem(path="/data/last.pt", mount="/data", size=1 << 30, full=True)
WRITES = ("/job/train.py", 40, "save", True)
SAVING = ("/venv/torch/serialization.py", 900, "save", False)


def died(*disks: FileSystem, in_sample: bool = False, **more: Any) -> Case:
    raised = Raised(**{"type": "OSError", "message": "no", "frames": [WRITES], **more})
    measured = Measured(file_systems=list(disks))
    sample = SampleFailed(pid=5, at=1.0, raised=raised, measured=measured, in_work=SampleInWork(sample=7))
    return Case(
        outcome="died",
        root=5,
        exits=(Exit(5, code=1),),
        flights=(Flight(5, role="main", step=3),),
        deaths=(Died(pid=5, at=2.0, raised=raised, measured=measured),),
        samples_failed=(sample,) if in_sample else (),
    )


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_an_errno_says_so(number: int) -> None:
    assert said(died(FULL, errno=number)) == [("disk-full", "error")]
    assert said(died(errno=number, files=["/data/last.pt"])) == [("disk-full", "error")]


def test_torch_s_own_error_has_none_and_the_measured_space_decides() -> None:
    frames = [SAVING, WRITES]
    assert said(died(FULL, type="RuntimeError", frames=frames)) == [("disk-full", "error")]
    room = FileSystem(path="/data/last.pt", mount="/data", size=1 << 30, free=1 << 29)
    assert said(died(room, type="RuntimeError", frames=frames)) == [("uncaught-exception", "error")]


def test_the_sample_that_wrote_is_beneath_it() -> None:
    assert said(died(FULL, errno=errno.ENOSPC, in_sample=True)) == [("disk-full", "error")]


@pytest.mark.parametrize(
    "more",
    [
        {"files": ["/dev/shm/torch_1"]},
        {"frames": [("/usr/lib/python3/multiprocessing/synchronize.py", 57, "__init__", False), WRITES]},
    ],
    ids=["path", "semaphore"],
)
def test_no_space_in_shared_memory_is_not_the_disk(more: dict[str, Any]) -> None:
    assert said(died(errno=errno.ENOSPC, **more)) == [("shared-memory-full", "error")]
