"""The old part of a loss's graph: found where it grows, and only there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from unstuck.model import Case, Fact
from unstuck.recorder import facts, flight
from unstuck.recorder.probes.memory import graph_growth
from unstuck.rules.loop import graph_grows_every_step


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    said: list[Any] = []
    monkeypatch.setattr(facts, "tell", lambda _, data: said.append(data))
    for name, value in (("_points", []), ("_newest", -1), ("_calls", 0)):
        monkeypatch.setattr(graph_growth, name, value)
    monkeypatch.setattr(flight, "steps", 0)
    return said


def backward(loss: torch.Tensor) -> None:
    graph_growth.at_backward((loss,), {})
    loss.backward(retain_graph=True)
    flight.steps += 1


def named(told: list[Any]) -> list[str]:
    case = Case(facts=tuple(Fact(1, float(n), "graph", data) for n, data in enumerate(told)))
    return [finding.rule for finding in graph_grows_every_step.decide(case)]


def test_a_state_that_is_never_detached(told: list[Any]) -> None:
    read, state = nn.Linear(4, 4), torch.zeros(4)
    for _ in range(130):
        state = 0.9 * state + read(torch.ones(4))
        backward(state.sum())
    assert [point["call"] for point in told[-1]["points"]] == [2, 4, 8, 16, 32, 64, 128]
    assert told[-1]["site"][2] == "backward"
    assert named(told) == ["graph-grows-every-step"]


def test_a_large_graph_is_counted_as_far_as_allowed(told: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_growth, "NODES", 100)
    read, state = nn.Linear(4, 4), torch.zeros(4)
    for _ in range(70):
        state = 0.9 * state + read(torch.ones(4))
        backward(state.sum())
    assert told[-1]["points"][-1]["capped"]
    assert named(told) == ["graph-grows-every-step"]


@pytest.mark.parametrize("window", [1, 3, 20, 50])
def test_windows_of_truncated_backpropagation(told: list[Any], window: int) -> None:
    read, state = nn.Linear(4, 4), torch.zeros(4)
    for step in range(300):
        if step % window == 0:
            state = state.detach()
        state = 0.9 * state + read(torch.ones(4))
        backward(state.sum())
    assert named(told) == []


def test_a_part_kept_on_purpose(told: list[Any]) -> None:
    basis, model = torch.ones(8, requires_grad=True), nn.Linear(4, 1)
    prior = basis.exp().log().pow(2).sum()
    for _ in range(130):
        backward(model(torch.ones(4)).sum() + prior)
    assert told == []


def test_longer_sequences_make_new_nodes(told: list[Any]) -> None:
    cell = nn.Linear(4, 4)
    for step in range(130):
        state = torch.zeros(4)
        for _ in range(1 + step // 4):
            state = cell(state).tanh()
        backward(state.sum())
    assert told == []


def test_tensors_that_have_no_graph_are_left_alone(told: list[Any]) -> None:
    graph_growth.at_backward((torch.ones(1),), {})
    graph_growth.at_backward((), {})
    graph_growth.at_backward((), {"tensors": [torch.ones(1, requires_grad=True)]})
    assert told == []
