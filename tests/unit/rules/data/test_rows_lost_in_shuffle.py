"""rows-lost-in-shuffle, on Cases made by hand and on what `random.shuffle` really does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.unit.recorder.written import written
from unstuck.model import Case
from unstuck.recorder import guard
from unstuck.recorder.hooks import shuffles
from unstuck.recorder.records.data import LostRows
from unstuck.recorder.records.learning import Learning
from unstuck.rules.data import rows_lost_in_shuffle

LOST = LostRows(
    pid=7, at=1.0, site=("/p/train.py", 18, "epoch"), shape=[1000, 25], calls=4, lost=3, different=1000, left=60
)  # fmt: skip


def test_what_is_left() -> None:
    training = (Learning(pid=7, at=1.0),)
    (found,) = rows_lost_in_shuffle.decide(Case(lost_rows=(LOST,), learnings=training))
    assert (found.severity, found.where.line) == ("error", 18)
    assert "60 of 1,000 are left" in found.title
    (found,) = rows_lost_in_shuffle.decide(Case(lost_rows=(LOST,)))
    assert found.severity == "info", "nothing is trained"
    for few in (replace(LOST, shape=[9, 9]), replace(LOST, left=995)):
        assert not list(rows_lost_in_shuffle.decide(Case(lost_rows=(few,), learnings=training)))


@pytest.fixture
def hooked() -> Iterator[None]:
    shuffles.install(random)
    yield
    guard.remove("random.shuffle")


@pytest.mark.parametrize("thing", [np.random.randn(60, 3), torch.randn(60, 3), torch.randn(60)])
@pytest.mark.usefixtures("hooked")
def test_of_views(thing: Any) -> None:
    with written() as records:
        random.Random(0).shuffle(thing)
    (told,) = records
    assert told.shape == list(thing.shape)
    assert told.different - told.left == told.lost > 10


@pytest.mark.parametrize("thing", [list(range(60)), np.random.randn(60), np.ones((60, 3)), torch.zeros(60)])
@pytest.mark.usefixtures("hooked")
def test_of_others(thing: Any) -> None:
    with written() as records:
        random.shuffle(thing)
    assert records == []


def test_the_same_order() -> None:
    before = random.Random(3).sample(range(50), 50)
    one, other = list(before), list(before)
    random.Random(5).shuffle(one)
    shuffles.install(random)
    random.Random(5).shuffle(other)
    guard.remove("random.shuffle")
    assert one == other
    assert random.shuffle.__func__ is random.Random.shuffle  # type: ignore[attr-defined]
