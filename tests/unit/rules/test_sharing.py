"""The rules on shared memory and shared files, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unstuck.model import Case, Finding
from unstuck.recorder.records.loaders import (
    AliasedBatch,
    LoaderSettings,
    MovedHandle,
    WorkersStarted,
)
from unstuck.rules.data import batch_aliases_dataset, file_handle_shared_across_workers

MAIN, FIRST, SECOND = 10, 11, 12
LOADER = LoaderSettings(
    pid=MAIN,
    loader=77,
    number=0,
    site=("/p/train.py", 30, "main"),
    dataset="Records",
    dataset_site=("/p/train.py", 9, "Records.__getitem__"),
    batch_size=None,
)


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


ALIASED: dict[str, Any] = {
    "pid": MAIN, "number": 0, "looks": 5, "shared": 5, "changes": 4, "again": 2, "rewritten": 2,
    "harm": True, "line": ("/p/train.py", 33, "main"),
    "attribute": "store[3]", "sample": 3, "address": 0x5000, "bytes": 40, "version_before": 0, "version_after": 2,
    "value_before": 0.25, "value_after": 1.5, "step": 4,
}  # fmt: skip


def aliased(**more: Any) -> Finding:
    case = Case(loaders=(LOADER,), aliased_batches=(AliasedBatch(**{**ALIASED, **more}),))
    (found,) = batch_aliases_dataset.decide(case)
    return found


def test_a_batch_written_in_the_data_sets_memory() -> None:
    found = aliased()
    assert (found.severity, found.where.line, found.where.sample) == ("error", 33, 3)
    told = "\n".join(found.evidence)
    assert "0x5000" in told
    assert "40 bytes inside Records.store[3]" in told
    assert "was 0.25 and became 1.5" in told
    assert "from 0 to 2" in told
    assert "batch_size=None" in told


def test_without_its_line_it_is_the_loaders() -> None:
    found = aliased(line=None)
    assert found.where.line == 30
    assert found.confidence < aliased().confidence


def test_without_numbers_and_versions_it_is_still_said_what_was_seen() -> None:
    found = aliased(value_before=None, value_after=None, version_before=None, version_after=None, sample=None)
    assert "its bytes had changed" in found.evidence[1]
    assert any("2 times it was modified again" in line for line in found.evidence)


def test_a_change_by_a_last_digit_is_seen_as_one() -> None:
    found = aliased(value_before=0.1, value_after=0.10000000149011612)
    assert "was 0.10000000000000001 and became 0.10000000149011612" in found.evidence[1]


@pytest.mark.parametrize(
    ("again", "words"), [(0, "come again in a later epoch so far"), (3, "and it was not modified again")]
)
def test_before_a_later_pass_is_given_what_was_left_and_changes_it_is_no_error(again: int, words: str) -> None:
    found = aliased(again=again, rewritten=0, harm=False)
    assert (found.severity, found.where.line, found.where.sample) == ("info" if again else "warning", 33, 3)
    assert "later epochs see" not in found.title
    assert any(words in line for line in found.evidence)


def test_nothing_told_nothing_said() -> None:
    assert not handles(Case())
    assert not list(batch_aliases_dataset.decide(Case()))
    assert not handles(replace(shared(*ALL), moved_handles=()))
