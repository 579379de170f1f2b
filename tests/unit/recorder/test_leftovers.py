"""Gradients that updates written by hand leave behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from unstuck.recorder.leftovers import Leftovers
from unstuck.recorder.stepping import Leaf


def train(updates: int, clear: Callable[[torch.Tensor], object], passes: int = 1) -> tuple[int, int]:
    """So many updates, each after so many backward passes; `clear` is called after each."""
    weight, leftovers = torch.ones(4, requires_grad=True), Leftovers()
    for _ in range(updates):
        for _ in range(passes):
            loss = (weight * torch.rand(4)).sum()
            leftovers.before([Leaf(weight)])
            loss.backward()
            leftovers.after()
        with torch.no_grad():
            assert weight.grad is not None
            weight -= 0.1 * weight.grad
        clear(weight)
    return leftovers.counts()


def forget(weight: torch.Tensor) -> None:
    weight.grad = None


def zero(weight: torch.Tensor) -> None:
    assert weight.grad is not None
    weight.grad.zero_()


def shrink(weight: torch.Tensor) -> None:
    assert weight.grad is not None
    weight.grad.mul_(0.9)


@pytest.mark.parametrize("passes", [1, 3])
def test_nobody_clears(passes: int) -> None:
    assert train(12, id, passes) == (10, 10)


@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("clear", [forget, zero])
def test_cleared_after_each_update(clear: Callable[[torch.Tensor], object], passes: int) -> None:
    assert train(12, clear, passes) == (0, 10)


def test_gradients_that_fade_are_momentum() -> None:
    stale, checked = train(12, shrink)
    assert checked == 10
    assert stale <= 1


def test_clipped_and_never_cleared() -> None:
    def clip(weight: torch.Tensor) -> None:
        torch.nn.utils.clip_grad_norm_([weight], 0.5)

    stale, checked = train(12, clip)
    assert stale >= 0.9 * checked


def test_one_leaf_that_nobody_clears_is_not_enough() -> None:
    weight, given, leftovers = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True), Leftovers()
    for _ in range(12):
        loss = (weight * given).sum()
        leftovers.before([Leaf(given), Leaf(weight)])
        loss.backward()
        with torch.no_grad():
            assert weight.grad is not None
            weight -= 0.1 * weight.grad
            given.copy_(torch.rand(4))  # the next batch, in the same tensor
        forget(weight)
    assert leftovers.counts() == (0, 10)
