"""loader-exhausted, on Cases made by hand."""

from __future__ import annotations

from unstuck.model import Case
from unstuck.recorder.records.loaders import AskedAfterEnd, EmptyPass, LoaderSettings, PassEnded
from unstuck.rules.loop import loader_exhausted

SITE = ("/job/train.py", 30, "main")
OVER = AskedAfterEnd(pid=5, number=0, passes=1, again=4, site=SITE, step=12)


def test_an_iterator_that_has_ended_and_is_used_again() -> None:
    (finding,) = loader_exhausted.decide(Case(asked_after_end=(OVER,)))
    assert finding.title == "The iterator created at train.py:30 is used up: every further epoch gets nothing from it"
    assert "next() was called on it 4 more times" in finding.evidence[0]
    assert finding.severity == "error"


def test_an_iterator_that_was_created_again_is_not_used_up() -> None:
    again = PassEnded(pid=5, number=0, passes=2, batches=9)
    assert not list(loader_exhausted.decide(Case(asked_after_end=(OVER,), passes_ended=(again,))))


def test_another_process_has_loaders_with_the_same_numbers() -> None:
    others = PassEnded(pid=6, number=0, passes=3, batches=9)
    assert list(loader_exhausted.decide(Case(asked_after_end=(OVER,), passes_ended=(others,))))


def test_a_dataset_that_is_used_up_after_one_pass() -> None:
    settings = LoaderSettings(pid=5, number=0, dataset="Lines", dataset_site=("/job/data.py", 20, "Lines.__iter__"))
    empty = EmptyPass(pid=5, number=0, site=SITE, step=40, empty=3, full_passes=1, iterable=True)
    (finding,) = loader_exhausted.decide(Case(loaders=(settings,), empty_passes=(empty,)))
    assert finding.title == "Lines is used up after one pass: every further pass is empty"
    assert (finding.severity, finding.where.file, finding.also[0].file) == ("error", "/job/data.py", "/job/train.py")
    assert "3 passes in a row gave none" in finding.evidence[0]
