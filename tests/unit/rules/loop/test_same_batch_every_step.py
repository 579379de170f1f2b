"""same-batch-every-step, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unstuck.model import Case, Finding
from unstuck.recorder.records.loaders import LoaderSettings, SameBatch
from unstuck.recorder.records.loops import Remade, SameGiven
from unstuck.rules.loop import same_batch_every_step

SITE = ("/job/train.py", 30, "main")
RESEEDED = Remade(
    how="reseeded", call="get_batch()", text="Generator().manual_seed(0)", site=("/job/train.py", 12, "get_batch")
)


def same(**more: Any) -> SameBatch:
    known: dict[str, Any] = {
        "number": 0,
        "length": 100,
        "passes": 1,
        "site": SITE,
        "step": 50,
        "same": 7,
        "batches": 50,
    }
    return SameBatch(pid=5, at=9.0, **{**known, **more})


def only(record: SameBatch) -> Finding:
    settings = LoaderSettings(pid=5, number=0, dataset="Pictures", dataset_site=("/job/data.py", 20, "g"))
    (finding,) = same_batch_every_step.decide(Case(loaders=(settings,), same_batches=(record,)))
    return finding


def test_batches_that_followed_each_other() -> None:
    finding = only(same())
    assert finding.title == "8 batches in a row had the same contents"
    assert "they came from one pass" in finding.evidence[1]
    assert (finding.severity, finding.where.file) == ("info", "/job/data.py")


def test_batches_between_which_others_were_not_compared() -> None:
    finding = only(same(apart=32))
    assert "in a row" not in finding.title
    assert "the last 8 compared batches" in finding.evidence[0]
    assert "up to 32 batches" in finding.evidence[1]
    assert "index it gets" not in finding.fix.text, "the others may be different"


def test_a_pass_a_step() -> None:
    finding = only(same(short=7, passes=8, batches=1))
    assert (finding.severity, finding.where.file) == ("error", "/job/train.py")
    assert "8 passes over it began at train.py:30" in finding.evidence[1]


@pytest.mark.parametrize(
    "record",
    [same(same=6), same(length=1), same(step=0), same(passes=20, batches=1)],
    ids=["few", "one", "none", "look"],
)
def test_what_is_not_the_same_batch_every_step(record: SameBatch) -> None:
    assert not list(same_batch_every_step.decide(Case(same_batches=(record,))))


def given(same: int = 15, step: int = 60, remade: Remade = RESEEDED) -> SameGiven:
    return SameGiven(pid=5, site=SITE, same=same, rows=16, first=2, step=step, remade=remade)


def test_batches_that_a_script_makes_itself() -> None:
    (finding,) = same_batch_every_step.decide(Case(same_given=(given(),)))
    assert finding.title == "Every step trains on the same batch: get_batch seeds its generator in every step"
    assert finding.severity == "error"
    assert finding.where.line == 12


def test_values_that_are_made_up_from_one_seed_may_be_meant() -> None:
    (finding,) = same_batch_every_step.decide(Case(same_given=(given(remade=replace(RESEEDED, drawn="values")),)))
    assert finding.severity == "warning"


def test_another_batch_came_later() -> None:
    assert not list(same_batch_every_step.decide(Case(same_given=(given(), given(same=0, step=90)))))
