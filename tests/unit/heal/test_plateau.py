"""`unstuck.Plateau`: lowers the rate, then stops, on epoch means; NaN is never better; says when and why."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import unstuck


def optimizer(rate: float = 0.1) -> Any:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], rate)


def test_it_lowers_the_rate_then_stops(capfd: Any) -> None:
    opt = optimizer()
    plateau = unstuck.Plateau(opt, patience=2, factor=0.5, min_rate=0.04, stop_after=6)
    rates, stops = [], []
    for loss in (1.0, 0.5, 0.5, 0.5, 0.6, 0.5, 0.5, 0.5):
        stops.append(plateau.end_epoch(loss))
        rates.append(opt.param_groups[0]["lr"])
    assert rates == pytest.approx([0.1, 0.1, 0.1, 0.05, 0.05, 0.04, 0.04, 0.04])
    assert stops == [False] * 7 + [True]
    assert (plateau.best, plateau.best_epoch, plateau.stopped) == (0.5, 2, True)
    assert capfd.readouterr().err.splitlines() == [
        "unstuck.Plateau: epoch 4: learning rate 0.1 → 0.05: no better than 0.5 (epoch 2) for 2 epochs, now 0.5",
        "unstuck.Plateau: epoch 6: learning rate 0.05 → 0.04: no better than 0.5 (epoch 2) for 4 epochs, now 0.5",
        "unstuck.Plateau: epoch 8: stop: no better than 0.5 (epoch 2) for 6 epochs, now 0.5",
    ]


def test_the_mean_is_weighted_by_samples_and_may_be_of_tensors() -> None:
    plateau = unstuck.Plateau()
    plateau.add(torch.tensor(1.0, requires_grad=True), 3)
    plateau.add(5.0)
    plateau.end_epoch()
    assert plateau.mean == pytest.approx(2.0)
    plateau.add(torch.tensor([7.0]))
    plateau.end_epoch()
    assert plateau.mean == pytest.approx(7.0), "an epoch begins anew"


@pytest.mark.parametrize("mode", ["min", "max"])
def test_nan_is_never_better(mode: Any, capfd: Any) -> None:
    plateau = unstuck.Plateau(mode=mode, stop_after=3)
    assert [plateau.end_epoch(value) for value in (math.nan, -math.inf, math.inf)] == [False, False, True]
    assert plateau.best is None
    assert "no epoch had a finite mean in 3 epochs" in capfd.readouterr().err
    again = unstuck.Plateau(mode=mode)
    again.end_epoch(0.5)
    for loss in (0.4, math.nan, 0.4):
        again.add(loss)
    again.end_epoch()
    assert again.best == 0.5
    assert "the mean is NaN (1 of 3 batches): it does not count as better" in capfd.readouterr().err


def test_a_change_too_small_is_none_and_more_can_be_better() -> None:
    least = unstuck.Plateau(min_change=0.01)
    most = unstuck.Plateau(mode="max")
    for plateau, values in ((least, (1.0, 0.995)), (most, (0.5, 0.7))):
        for value in values:
            plateau.end_epoch(value)
    assert (least.best, most.best) == (1.0, 0.7)


def test_its_state_goes_through_a_checkpoint() -> None:
    plateau = unstuck.Plateau(stop_after=3)
    for value in (1.0, 2.0, 2.0):
        plateau.end_epoch(value)
    again = unstuck.Plateau(stop_after=3)
    again.load_state_dict(plateau.state_dict())
    assert again.end_epoch(2.0)
    with pytest.raises(ValueError, match="it lacks"):
        again.load_state_dict({"epoch": 3})


def test_a_rate_that_is_a_tensor_stays_one() -> None:
    opt = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], torch.tensor(0.1), foreach=False, capturable=True)
    plateau = unstuck.Plateau(opt, patience=1)
    plateau.end_epoch(1.0)
    plateau.end_epoch(1.0)
    assert float(opt.param_groups[0]["lr"]) == pytest.approx(0.01)


def test_bad_input() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"patience": 0}, "patience must be a whole number"),
        ({"patience": None}, "patience must be a whole number"),
        ({"stop_after": 1.5}, "stop_after must be a whole number"),
        ({"factor": 1.0}, "factor must lie between 0 and 1"),
        ({"mode": "best"}, "mode must be"),
        ({"min_rate": -1}, "must be 0 or more"),
    ]
    for options, words in wrong:
        with pytest.raises(ValueError, match=words):
            unstuck.Plateau(**options)
    numbers: list[dict[str, Any]] = [{"factor": "0.1"}, {"min_rate": None}, {"min_change": "1%"}]
    for options in numbers:
        with pytest.raises(TypeError, match="must be a number, not"):
            unstuck.Plateau(**options)
    for state in (None, {}, {"epoch": 3}):
        with pytest.raises(ValueError, match=r"not the state of an unstuck\.Plateau"):
            unstuck.Plateau().load_state_dict(state)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes an optimizer"):
        unstuck.Plateau(torch.nn.Linear(1, 1))
    with pytest.raises(ValueError, match="nothing was added"):
        unstuck.Plateau().end_epoch()
    with pytest.raises(ValueError, match="mean loss of a batch"):
        unstuck.Plateau().add(torch.zeros(3))
    with pytest.raises(ValueError, match="a batch has samples"):
        unstuck.Plateau().add(1.0, 0)
