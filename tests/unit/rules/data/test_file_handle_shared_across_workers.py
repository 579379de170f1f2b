"""file-handle-shared-across-workers, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.rules.data.sharing import LOADER, MAIN
from unstuck.model import Case, Finding
from unstuck.recorder.records.loaders import (
    MovedHandle,
    WorkersStarted,
)
from unstuck.rules.data import batch_aliases_dataset, file_handle_shared_across_workers

FIRST, SECOND = 11, 12


def moved(pid: int, worker: int | None, reads: int = 3, **more: Any) -> MovedHandle:
    about = {"device": 1, "inode": 99, **more}
    return MovedHandle(
        pid=pid,
        fd=5,
        path="/d/train.bin",
        times=2,
        seen=[(0, 40), (80, 20)],
        worker=worker,
        reads=reads,
        step=4,
        **about,
    )


def started(*pids: int) -> WorkersStarted:
    return WorkersStarted(pid=MAIN, number=0, pids=list(pids))


def shared(*handles: MovedHandle, again: tuple[WorkersStarted, ...] = ()) -> Case:
    return Case(loaders=(LOADER,), workers_started=(started(FIRST, SECOND), *again), moved_handles=handles)


NAMED: dict[str, Any] = {"attribute": "file", "opened": ("/p/train.py", 6, "Records.__init__"), "guarded": False}
ALL = (moved(MAIN, None), moved(FIRST, 0, **NAMED), moved(SECOND, 1, **NAMED))


def handles(case: Case) -> list[Finding]:
    return list(file_handle_shared_across_workers.decide(case))


def test_a_file_that_each_saw_move_without_its_own_doing() -> None:
    (found,) = handles(shared(*ALL))
    assert (found.severity, found.where.file, found.where.line) == ("error", "/p/train.py", 6)
    assert "Records.file" in found.title
    told = "\n".join(found.evidence)
    assert "descriptor 5" in told
    assert "worker 1 (pid 12)" in told
    assert "left it at byte 80 after a batch and found it at 20" in told
    assert "it was open before the workers were forked" in told
    assert "it went from 80 to 20 while the main process waited" in told


@pytest.mark.parametrize("missing", range(3))
def test_whoever_saw_nothing_may_be_the_only_one_that_reads(missing: int) -> None:
    assert not handles(shared(*(each for place, each in enumerate(ALL) if place != missing)))


def test_a_lock_that_may_guard_it_is_enough_to_be_silent() -> None:
    assert not handles(shared(ALL[0], ALL[1], moved(SECOND, 1, **{**NAMED, "guarded": True})))


def test_workers_that_neither_hold_it_nor_read_did_not_move_it() -> None:
    assert not handles(shared(ALL[0], moved(FIRST, 0, reads=0), moved(SECOND, 1, reads=0)))
    (found,) = handles(shared(ALL[0], moved(FIRST, 0), moved(SECOND, 1)))
    assert found.where.line == 9, "where it was opened is not known: then where it is used"


def test_two_files_are_two_stories() -> None:
    assert not handles(shared(ALL[0], ALL[1], moved(SECOND, 1, inode=100, **NAMED)))


def test_workers_of_later_passes_count_for_their_numbers() -> None:
    assert len(handles(shared(ALL[0], ALL[1], moved(22, 1, **NAMED), again=(started(21, 22),)))) == 1


def test_nothing_told_nothing_said() -> None:
    assert not handles(Case())
    assert not list(batch_aliases_dataset.decide(Case()))
    assert not handles(replace(shared(*ALL), moved_handles=()))
