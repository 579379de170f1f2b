"""Where a loss usually is: a value far above that stands out, also if such values came early on."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from unstuck.recorder import flight
from unstuck.recorder.gpu import Copies
from unstuck.recorder.probes.learning.losses import FINITE, Losses, Series


def stood_out(values: list[float]) -> list[int]:
    series = Series(None)
    found = []
    for step, value in enumerate(values):
        series.add(value, step)
        if series.far:
            found.append(step)
    return found


def noisy(count: int) -> list[float]:
    return [1.0 + 0.2 * ((7 * step) % 11) / 11 for step in range(count)]


def test_bad_batches_from_the_start_on_do_not_hide_later_ones() -> None:
    values = noisy(400)
    for step in range(20, 400, 40):
        values[step] = 1e6
    assert stood_out(values) == list(range(100, 400, 40))


def test_a_loss_that_only_falls_never_stands_out() -> None:
    assert stood_out([5.0 * 0.99**step + 0.1 * ((7 * step) % 11) / 11 for step in range(600)]) == []


def here() -> FrameType:
    return sys._getframe(1)


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch) -> Losses:
    monkeypatch.setattr(flight, "state", [0] * len(flight.state))
    return Losses(Copies(), lambda *_: None)


def values_of(losses: Losses) -> list[list[float]]:
    return [series.first for series in losses.series.values()]


def test_values_of_ordinary_steps_go_to_the_only_loss(losses: Losses) -> None:
    for first in (0.0, 4.0):
        losses.read([first + 1, first + 2, first + 3], None)
        losses.read([first + 4], here())
    assert values_of(losses) == [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]]


def test_losses_that_take_turns_are_told_apart(losses: Losses) -> None:
    def sampled(of_one: list[float], of_other: list[float]) -> None:
        losses.read(of_one, here())
        losses.read(of_other, here())

    for _ in range(3):
        sampled([1.0], [-1.0])
    losses.read([2.0, -2.0] * 2, None)
    sampled([3.0], [-3.0])
    assert values_of(losses) == [[1.0, 1.0, 1.0, 2.0, 2.0, 3.0], [-1.0, -1.0, -1.0, -2.0, -2.0, -3.0]]
    losses.read([4.0, -4.0, 5.0], None)  # one too many: whose they are is not known
    sampled([6.0], [-6.0])
    assert [values[-1] for values in values_of(losses)] == [6.0, -6.0]
    assert [len(values) for values in values_of(losses)] == [7, 7]


def test_a_new_loss_is_given_nothing_of_the_one_before(losses: Losses) -> None:
    for value in (1.0, 2.0):
        losses.read([value], here())
    losses.read([3.0, 10.0], None)
    losses.read([11.0], here())
    assert values_of(losses) == [[1.0, 2.0], [11.0]]


def test_the_limits_follow_the_loss(losses: Losses) -> None:
    assert losses.limits() == FINITE
    for value in noisy(150):
        losses.read([value], here())
    low, high = losses.limits()
    assert low == FINITE[0]
    assert 3.0 < high < 5.0
    for _ in range(60):  # another one, far above: its values are none that stand out
        losses.read([50.0], here())
    assert losses.limits()[1] >= 50.0
