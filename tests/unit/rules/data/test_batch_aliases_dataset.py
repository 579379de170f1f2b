"""batch-aliases-dataset, on Cases made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.rules.data.sharing import LOADER, MAIN
from unstuck.model import Case, Finding
from unstuck.recorder.records.loaders import AliasedBatch, KeptInOnePlace, RewrittenData
from unstuck.rules.data import batch_aliases_dataset

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
    assert any("it was modified again 2 times" in line for line in found.evidence)


def test_a_change_by_a_last_digit_is_seen_as_one() -> None:
    found = aliased(value_before=0.1, value_after=0.10000000149011612)
    assert "was 0.10000000000000001 and became 0.10000000149011612" in found.evidence[1]


@pytest.mark.parametrize(
    ("again", "words"), [(0, "come again in a later epoch so far"), (3, "it was not modified again")]
)
def test_before_a_later_pass_is_given_what_was_left_and_changes_it_is_no_error(again: int, words: str) -> None:
    found = aliased(again=again, rewritten=0, harm=False)
    assert (found.severity, found.where.line, found.where.sample) == ("info" if again else "warning", 33, 3)
    assert "later epochs see" not in found.title
    assert any(words in line for line in found.evidence)


def test_without_a_loader_the_line_is_named() -> None:
    data = RewrittenData(
        pid=MAIN, shape=[4800, 12], looks=28, places=24, again=4, kept=2, line=("/p/train.py", 16, "main"),
        value_before=0.5, value_after=2.25, step=90,
    )  # fmt: skip
    (found,) = batch_aliases_dataset.decide(Case(rewritten_data=(data,)))
    assert (found.severity, found.where.line) == ("error", 16)
    assert "views of one tensor or array of 4800 × 12" in found.evidence[0]
    assert "was 0.5 and came as 2.25" in found.evidence[3]


def test_one_memory_that_is_kept_many_times() -> None:
    line = ("/p/train.py", 42, "Ahead.run")
    kept = KeptInOnePlace(pid=MAIN, name="feed.q", looks=6, changes=3, line=line, called="buf", step=9)
    (found,) = batch_aliases_dataset.decide(Case(kept_in_one_place=(kept,)))
    assert (found.severity, found.where.line, found.where.step) == ("error", 42, 9)
    assert "calls this memory `buf`" in found.evidence[-1]
