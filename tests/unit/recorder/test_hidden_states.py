"""A loss on the hidden state of a recurrent layer, whichever way it comes out of it; and on what is something else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from unstuck.recorder.probes.learning.model_output import hidden_state

X = torch.randn(4, 5, 6)


def found(output: Any) -> str:
    return hidden_state(nn.functional.mse_loss(output, torch.zeros_like(output)).grad_fn)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_layers(layers: int, both: bool) -> None:
    for layer, kind in ((nn.GRU, "gru"), (nn.RNN, "tanh")):
        states, last = layer(6, 3, layers, batch_first=True, bidirectional=both)(X)
        assert found(states[:, -1]) == found(states) == found(last[-1]) == kind
    lstm = nn.LSTM(6, 3, layers, batch_first=True, bidirectional=both)
    states, (last, memory) = lstm(X)
    assert found(states[:, -1]) in ("lstm", "gated_tanh")
    assert found(last[-1]) in ("lstm", "gated_tanh")
    assert found(memory[-1]) == "", "it has no bounds"


def test_cells() -> None:
    gru, lstm = nn.GRUCell(6, 3), nn.LSTMCell(6, 3)
    state = gru(X[:, 1], gru(X[:, 0]))
    assert found(state) == "gru"
    hidden, memory = lstm(X[:, 1], lstm(X[:, 0]))
    assert found(hidden) == found(torch.stack([hidden, hidden])) == "gated_tanh"
    assert found(memory) == ""


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_what_has_no_such_bounds() -> None:
    linear = nn.Linear(6, 3)
    states, _ = nn.GRU(6, 3, batch_first=True)(X)
    projected, _ = nn.LSTM(6, 3, batch_first=True, proj_size=2)(X)
    rectified, _ = nn.RNN(6, 3, nonlinearity="relu", batch_first=True)(X)
    for output in (
        linear(X), projected, rectified, 2 * states, states + linear(X), torch.cat([states, linear(X)], 1),
        linear(X) * torch.sigmoid(linear(X)) + torch.tanh(linear(X)),
    ):  # fmt: skip
        assert found(output) == ""
