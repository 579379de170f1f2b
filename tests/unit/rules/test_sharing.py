"""The rules on shared memory and shared files, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unstuck.model import Case, Fact, Finding, SharedFile
from unstuck.rules.data import batch_aliases_dataset, file_handle_shared_across_workers

MAIN, FIRST, SECOND = 10, 11, 12
LOADER = {
    "loader": 77,
    "number": 0,
    "site": ["/p/train.py", 30, "main"],
    "dataset": "Records",
    "dataset_site": ["/p/train.py", 9, "Records.__getitem__"],
    "batch_size": None,
}


def fact(pid: int, kind: str, data: dict[str, Any]) -> Fact:
    return Fact(pid, 1.0, kind, data)


def moved(pid: int, worker: int | None, **more: Any) -> Fact:
    data = {"fd": 5, "path": "/d/train.bin", "file": [1, 99], "times": 2, "seen": [[0, 40], [80, 20]]}
    return fact(pid, "handle-moved", {**data, "worker": worker, "reads": 3, "step": 4, **more})


def shared(*facts: Fact, **more: Any) -> Case:
    started = fact(MAIN, "workers", {"loader": 77, "pids": [FIRST, SECOND]})
    return Case(facts=(fact(MAIN, "loader", LOADER), started, *facts), **more)


NAMED = {"attribute": "file", "opened": ["/p/train.py", 6, "Records.__init__"], "guarded": False}
ALL = (moved(MAIN, None), moved(FIRST, 0, **NAMED), moved(SECOND, 1, **NAMED))


def handles(case: Case) -> list[Finding]:
    return list(file_handle_shared_across_workers.decide(case))


def test_a_file_that_each_saw_move_without_its_own_doing() -> None:
    (found,) = handles(shared(*ALL, shared_files=(SharedFile("/d/train.bin", 5, (MAIN, FIRST, SECOND), (8, 64)),)))
    assert (found.severity, found.where.file, found.where.line) == ("error", "/p/train.py", 6)
    assert "Records.file" in found.title
    told = "\n".join(found.evidence)
    assert "descriptor 5" in told
    assert "worker 1 (pid 12)" in told
    assert "left it at byte 80 when a batch was done and found it at 20" in told
    assert "10, 11, 12 (kcmp)" in told
    assert "8, 64" in told


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
    assert not handles(shared(ALL[0], ALL[1], moved(SECOND, 1, **{**NAMED, "file": [1, 100]})))


def test_without_the_kernels_word_the_offsets_are_proof() -> None:
    (found,) = handles(shared(*ALL))
    assert not any("kcmp" in line for line in found.evidence)


def test_workers_of_later_passes_count_for_their_numbers() -> None:
    again = fact(MAIN, "workers", {"loader": 77, "pids": [21, 22]})
    assert len(handles(shared(ALL[0], ALL[1], again, moved(22, 1, **NAMED)))) == 1


ALIASED: dict[str, Any] = {
    "number": 0, "looks": 5, "shared": 5, "changes": 4, "again": 2, "rewritten": 2,
    "harm": True, "line": ["/p/train.py", 33, "main"],
    "attribute": "store[3]", "sample": 3, "address": 0x5000, "bytes": 40, "version": [0, 2],
    "values": [0.25, 1.5], "step": 4,
}  # fmt: skip


def aliased(**more: Any) -> Finding:
    case = Case(facts=(fact(MAIN, "loader", LOADER), fact(MAIN, "batch-aliased", {**ALIASED, **more})))
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
    found = aliased(values=None, version=[None, None], sample=None)
    assert "its bytes were others" in found.evidence[1]
    assert any("2 times it was changed once more" in line for line in found.evidence)


def test_a_change_by_a_last_digit_is_seen_as_one() -> None:
    assert (
        "was 0.10000000000000001 and became 0.10000000149011612"
        in aliased(values=[0.1, 0.10000000149011612]).evidence[1]
    )


@pytest.mark.parametrize(
    ("again", "words"), [(0, "come again in a later pass so far"), (3, "it was not changed further then")]
)
def test_before_a_later_pass_is_given_what_was_left_and_changes_it_is_no_error(again: int, words: str) -> None:
    found = aliased(again=again, rewritten=0, harm=False)
    assert (found.severity, found.where.line, found.where.sample) == ("info" if again else "warning", 33, 3)
    assert "later passes see" not in found.title
    assert any(words in line for line in found.evidence)


def test_nothing_told_nothing_said() -> None:
    assert not handles(Case())
    assert not list(batch_aliases_dataset.decide(Case()))
    assert not handles(replace(shared(*ALL), facts=()))
