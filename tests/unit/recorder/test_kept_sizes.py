"""Shapes that are followed from the sizes which nodes keep are those of the tensors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from unstuck.recorder.probes.learning import kept_sizes

KNOWN: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "product": lambda y: y @ torch.randn(3, 2),
    "softmax": lambda y: torch.log_softmax(torch.relu(y), 1),
    "column": lambda y: y[:, 0],
    "column in front": lambda y: y[:, 0].unsqueeze(0),
    "column behind": lambda y: y[:, 0].unsqueeze(-1),
    "squeezed": lambda y: (y @ torch.randn(3, 1)).squeeze(),
    "squeezed at": lambda y: (y @ torch.randn(3, 1)).squeeze(-1),
    "mean": lambda y: y.mean(),
    "mean of rows": lambda y: y.mean(-1),
    "mean of both": lambda y: y.mean((0, 1)),
    "sum kept": lambda y: y.sum(1, keepdim=True),
    "all pairs": lambda y: y[:, 0].unsqueeze(1) - y[:, 1],
}


@pytest.mark.parametrize("name", KNOWN)
def test_known(name: str) -> None:
    made = KNOWN[name](_output())
    assert kept_sizes.shape(made.grad_fn) == list(made.shape)


@pytest.mark.parametrize("made", [lambda y: y.view(-1), lambda y: y - torch.randn(5, 3), lambda y: torch.cat([y, y])])
def test_what_is_not_kept_is_not_guessed(made: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert kept_sizes.shape(made(_output()).grad_fn) is None


def _output() -> torch.Tensor:
    output: torch.Tensor = nn.Linear(4, 3)(torch.randn(5, 4))
    return output
