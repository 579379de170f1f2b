"""The old part of a loss's graph: found where it grows, and only there."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from tests.unit.recorder.written import make_step, set_steps, written
from unstuck.model import Case
from unstuck.recorder.probes.memory import graph_growth
from unstuck.recorder.probes.memory.graph_growth import GraphGrowth
from unstuck.recorder.records.loops import LossGraph
from unstuck.rules.loop import graph_grows_every_step


class Training:
    """Steps whose backward passes the probe hears."""

    def __init__(self, told: list[LossGraph]) -> None:
        self.told, self.probe = told, GraphGrowth()

    def backward(self, loss: torch.Tensor) -> None:
        self.probe.before_backward(loss, sys._getframe(0))
        loss.backward(retain_graph=True)
        make_step()

    def named(self) -> list[str]:
        return [finding.rule for finding in graph_grows_every_step.decide(Case(loss_graphs=tuple(self.told)))]


@pytest.fixture
def training() -> Iterator[Training]:
    set_steps(0)
    with written() as told:
        yield Training(told)
    set_steps(0)


def test_a_state_that_is_never_detached(training: Training) -> None:
    read, state = nn.Linear(4, 4), torch.zeros(4)
    for _ in range(130):
        state = 0.9 * state + read(torch.ones(4))
        training.backward(state.sum())
    assert [point.call for point in training.told[-1].points] == [2, 4, 8, 16, 32, 64, 128]
    site = training.told[-1].site
    assert site is not None
    assert site[2] in ("Training.backward", "backward")  # the second before Python 3.11
    assert training.named() == ["graph-grows-every-step"]


def test_a_large_graph_is_counted_as_far_as_allowed(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_growth, "NODES", 100)
    read, state = nn.Linear(4, 4), torch.zeros(4)
    for _ in range(70):
        state = 0.9 * state + read(torch.ones(4))
        training.backward(state.sum())
    assert training.told[-1].points[-1].capped
    assert training.named() == ["graph-grows-every-step"]


@pytest.mark.parametrize("window", [1, 3, 20, 50])
def test_windows_of_truncated_backpropagation(training: Training, window: int) -> None:
    read, state = nn.Linear(4, 4), torch.zeros(4)
    for step in range(300):
        if step % window == 0:
            state = state.detach()
        state = 0.9 * state + read(torch.ones(4))
        training.backward(state.sum())
    assert training.named() == []


def test_a_part_kept_on_purpose(training: Training) -> None:
    basis, model = torch.ones(8, requires_grad=True), nn.Linear(4, 1)
    prior = basis.exp().log().pow(2).sum()
    for _ in range(130):
        training.backward(model(torch.ones(4)).sum() + prior)
    assert training.told == []


def test_longer_sequences_make_new_nodes(training: Training) -> None:
    cell = nn.Linear(4, 4)
    for step in range(130):
        state = torch.zeros(4)
        for _ in range(1 + step // 4):
            state = cell(state).tanh()
        training.backward(state.sum())
    assert training.told == []


def test_tensors_that_have_no_graph_are_left_alone(training: Training) -> None:
    frame = sys._getframe()
    training.probe.before_backward(torch.ones(1), frame)
    training.probe.before_backward(None, frame)
    training.probe.before_backward(torch.ones(1, requires_grad=True), frame)
    assert training.told == []
