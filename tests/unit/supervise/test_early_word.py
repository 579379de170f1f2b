"""One line about an unusual standstill, once, and one when it is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unstuck.model import Finding, Fix, Pace, Stall, Where
from unstuck.supervise.early_word import EarlyWord, cause_in_words

STALL = Stall(
    pid=7, phase="data", since=100.0, standing=15.5, pace=Pace(count=50, longest=0.2), still=12.0, suspect=True
)


def test_it_is_said_once_and_taken_back_once() -> None:
    early = EarlyWord()
    assert early.due((replace(STALL, standing=14.5),)) is None
    assert early.due((STALL,)) == STALL
    later = replace(STALL, standing=60.0, still=50.0)
    assert early.due((later,)) is None
    assert early.over((later,)) is None
    again = replace(STALL, since=161.0, standing=0.5, still=0.0, suspect=False)
    assert early.over((again,)) == STALL
    assert early.over((again,)) is None
    assert early.due((replace(again, standing=20.0, still=15.0, suspect=True),)) is not None  # another one


@pytest.mark.parametrize(
    "usual",
    [
        replace(STALL, excuse="compiling"),
        replace(STALL, seams=False),
        replace(STALL, suspect=False),
        replace(STALL, still=3.0),
        replace(STALL, pace=Pace(count=50, longest=8.0)),
    ],
    ids=["excused", "never recorded", "within its pace", "something moved", "such pauses are usual"],
)
def test_what_is_usual_is_not_worth_a_word(usual: Stall) -> None:
    assert EarlyWord().due((usual,)) is None


def test_waiting_times_scale_with_the_stall_clock() -> None:
    assert EarlyWord(scale=0.2).due((replace(STALL, standing=3.5, still=2.0),)) is not None


def test_a_title_in_the_middle_of_a_sentence() -> None:
    def finding(title: str, family: str = "hang") -> Finding:
        return Finding("r", family, "warning", 0.5, title, (), Where(), Fix("f"), "kernel")

    assert cause_in_words((finding("Worker 1 (pid 7) waits for a.lock"),)) == "worker 1 (pid 7) waits for a.lock"
    assert cause_in_words((finding("NFS does not answer"),)) == "NFS does not answer"
    assert cause_in_words((finding("Loss is NaN", "numerics"),)) == ""


def test_who_computes_is_left_alone() -> None:
    spins = Finding("main-spins", "hang", "error", 0.6, "It computes", (), Where(), Fix("f"), "py-spy")
    assert cause_in_words((spins,)) is None
    early = EarlyWord()
    assert early.due((STALL,)) == STALL
    early.leave_unsaid()
    assert early.over(()) is None
    assert early.due((replace(STALL, since=300.0),)) is not None, "about the next one there may be a word again"
