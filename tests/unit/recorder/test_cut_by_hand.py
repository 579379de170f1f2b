"""What a script keeps together, to update it itself."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from torch import nn

from unstuck.recorder import user_code
from unstuck.recorder.probes.learning import cut_search
from unstuck.recorder.probes.learning.cut_search import Search
from unstuck.recorder.probes.learning.module_calls import Call, Observation


@pytest.fixture(autouse=True)
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "is_user_file", lambda file: file == __file__)


class Own:
    """An optimizer of the script's own."""

    def __init__(self, held: Any) -> None:
        self.held = held


def keys(*modules: nn.Module) -> set[int]:
    return {id(p) for module in modules for p in module.parameters()}


def together(kept: Any, model: nn.Module) -> bool:
    """`kept` is a name of this frame."""
    return kept is not None and cut_search._keeps_together(keys(model[0]), keys(model[1]))


def test_a_list_of_the_scripts_own() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    assert together(list(model.parameters()), model)
    assert together(dict(model.named_parameters()), model)
    assert together(Own(list(model.named_parameters())), model)
    assert not together(list(model[1].parameters()), model)
    assert not together(model, model)


class Scaled(nn.Module):  # type: ignore[misc]  # torch says nothing of its type
    def __init__(self) -> None:
        super().__init__()
        self.tower, self.scale = nn.Linear(8, 8), nn.Parameter(torch.ones(()))

    def forward(self, x: Any) -> Any:
        return self.scale * self.tower(x).data


def search(model: Scaled, leaves: set[int]) -> Search:
    """Of one step, in which the script called the model."""
    observation = Observation()
    whole, inner = Call(model, model, 1, True), Call(model.tower, model, 2, True)
    inner.left, whole.left, inner.output_graph, observation.ended = 3, 4, True, 5
    inner.stack = [(Scaled.forward.__code__, Scaled.forward.__code__.co_firstlineno + 1)]
    observation.calls, observation.leaves = [whole, inner], leaves
    return Search(observation, keys(model.tower), {}, 1)


def test_a_loss_that_reaches_a_scale_only() -> None:
    model = Scaled()
    reached = {id(model.scale)}
    params = list(model.parameters())
    cut = search(model, reached).by_hand(5)
    assert cut is not None
    assert (cut.op, cut.ends, cut.by_hand, cut.proven) == ("data", "the loss", 5, 1)
    assert search(model, reached).by_hand(4) is None
    assert search(model, {*reached, id(nn.Parameter(torch.ones(3)))}).by_hand(5) is None  # used by no module
    with torch.no_grad():
        model.tower.weight[0] = 9.0  # of a training: no first weights
    assert search(model, reached).by_hand(5) is None
    assert all(weakref.ref(p)() is p for p in params)


def test_what_is_kept_apart_is_not_cut() -> None:
    model = Scaled()
    own = [model.scale]
    assert search(model, {id(own[0])}).by_hand(5) is None
