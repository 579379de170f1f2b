"""Losses written out by hand in which each prediction meets every target; and those that are meant so."""

from __future__ import annotations

from typing import Any

import torch

from unstuck.recorder.probes.learning import crossed_loss
from unstuck.recorder.probes.learning.graph_reading import SavedTensors

LAYER = torch.nn.Linear(3, 1)
X, Y = torch.randn(8, 3), torch.randn(8)


def found(loss: Any) -> tuple[list[int], list[int]] | None:
    return crossed_loss.find(loss.grad_fn, SavedTensors())


def test_a_column_meets_a_row() -> None:
    column = LAYER(X)
    gap = (Y - column).abs()
    huber = torch.where(gap < 1, 0.5 * gap**2, gap - 0.5).mean()
    assert found(huber) == ([8, 1], [8, 8])
    likelihood = (0.5 * column + (Y - LAYER(X)) ** 2 / column.exp()).mean()
    assert found(likelihood) == ([8, 1], [8, 8])
    assert found(-(column.sigmoid().log() * Y).mean()) == ([8, 1], [8, 8])
    assert found((column[:, 0] - Y.unsqueeze(1)).pow(2).sum() / 8) == ([8], [8, 8])


def test_what_is_meant_to_be_compared_with_everything() -> None:
    column = LAYER(X)
    assert found(((column - column.T) ** 2).mean()) is None, "distances between outputs"
    assert found(((column - Y) ** 2).min(1).values.mean()) is None, "the nearest of them"
    assert found((column * torch.randn(8, 8)).sum()) is None, "a matrix of weights for each pair"
    offsets = torch.zeros(8, requires_grad=True)
    assert found(((torch.randn(8, 8) - offsets[:, None]) ** 2).mean()) is None, "an offset for each row"
    assert found(((column[:, 0] - Y) ** 2).mean()) is None
