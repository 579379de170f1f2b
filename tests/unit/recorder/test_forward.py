"""What is seen of the modules of a step: which layers are given the data as it came, which norms were never updated."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from torch import nn

from unstuck.recorder import dispatch, governor, gpu
from unstuck.recorder.probes.data.batch_statistics import MOST_LAYERS, BatchStatistics, Source
from unstuck.recorder.probes.learning.naming import Names
from unstuck.recorder.probes.learning.observed_steps import ObservedSteps
from unstuck.recorder.probes.learning.optimizers import Optimizers
from unstuck.recorder.probes.learning.parameters import Parameters
from unstuck.recorder.records.data import LoaderData


@pytest.fixture(autouse=True)
def data(monkeypatch: pytest.MonkeyPatch) -> BatchStatistics:
    """The probe of the data, as the module hooks find it."""
    monkeypatch.setattr(governor.governor, "spent", 0.0)
    monkeypatch.setattr(governor.governor, "by_probe", {})
    made = BatchStatistics()
    monkeypatch.setitem(dispatch._dispatch.probes, "data", made)
    monkeypatch.setattr(dispatch._dispatch, "_listening", {})
    return made


def observed() -> ObservedSteps:
    copies = gpu.Copies()
    parameters = Parameters(copies)
    return ObservedSteps(parameters, Optimizers(parameters, copies), Names(), copies)


class Frozen(nn.Module):  # type: ignore[misc]  # torch says nothing of its type
    """Normalizes, goes through layers without a graph, and learns on top of them."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.ModuleList(nn.Linear(4, 4) for _ in range(9)).requires_grad_(False)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        x = x / 200
        with torch.no_grad():
            for layer in self.body:
                x = torch.relu(layer(x))
        return self.head(x)


def raw(model: nn.Module, *inputs: Any) -> list[str]:
    names = {id(module): name for name, module in model.named_modules()}
    steps = observed()
    steps.begin()
    observation = steps.now
    assert observation is not None
    model(*inputs)
    steps.end()
    return [names[id(call.module())] for call in observation.calls if call.raw is not None]


def test_behind_a_layer_without_a_graph_nothing_is_as_it_came() -> None:
    assert raw(Frozen(), 200 * torch.rand(32, 4)) == ["body.0"]


class Two(nn.Module):  # type: ignore[misc]  # torch says nothing of its type
    """A teacher without a graph, then a student, both given the batch; and another branch."""

    def __init__(self) -> None:
        super().__init__()
        self.teacher, self.student, self.other = (nn.Linear(4, 2) for _ in range(3))

    def forward(self, x: Any, z: Any) -> Any:
        with torch.no_grad():
            wanted = self.teacher(x)
        return self.student(x) - wanted + self.other(z * 2)


def test_what_the_loader_gave_is_known_again(data: BatchStatistics, monkeypatch: pytest.MonkeyPatch) -> None:
    x, z = torch.rand(8, 4), torch.rand(8, 4)
    source = Source(LoaderData(), None)
    monkeypatch.setattr(data, "model_given", lambda *_: None)
    data._now = source, [("[0]", weakref.ref(x)), ("[1]", weakref.ref(z))]
    assert raw(Two(), x, z) == ["teacher", "student"]
    assert source.gathered.used == {"[0]"}


def test_branches_with_a_graph_are_each_seen() -> None:
    class Branches(nn.Module):  # type: ignore[misc]  # torch says nothing of its type
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(4, 2), nn.Linear(3, 2)

        def forward(self, x: Any, z: Any) -> Any:
            return self.one(x) + self.two(z)

    assert raw(Branches(), torch.rand(8, 4), torch.rand(8, 3)) == ["one", "two"]


def test_no_more_than_a_few_and_only_while_it_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(9))

    class Many(nn.Module):  # type: ignore[misc]  # torch says nothing of its type
        def __init__(self) -> None:
            super().__init__()
            self.layers = layers

        def forward(self, x: Any) -> Any:
            return sum(layer(x) for layer in self.layers)

    assert len(raw(Many(), torch.rand(8, 4))) == MOST_LAYERS
    monkeypatch.setattr(governor.governor, "spent", 1e9)
    assert raw(Many(), torch.rand(8, 4)) == []


def test_what_a_layer_is_given_is_measured_on_little_of_it(data: BatchStatistics) -> None:
    about = data.scale_of("Linear", torch.full((64, 40, 300), 70.0))
    assert about is not None
    assert about.scale is not None
    assert about.scale.largest.size == pytest.approx(70.0)
    assert about.scale.columns == 300


def never_updated(norm: nn.Module, *, trained: bool = True) -> int:
    model = nn.Sequential(nn.Linear(4, 4), norm.requires_grad_(trained), nn.Dropout()).requires_grad_(trained)
    norm.eval()
    steps = observed()
    steps.begin()
    assert steps.now is not None
    out = model(torch.rand(8, 4))
    steps.at_backward(list(model.parameters()), whole=True)
    observation = steps.now
    steps.end()
    assert out.shape == (8, 4)
    model.requires_grad_(True)
    steps.modes.note(observation, {})
    (history,) = steps.modes.by_root.values()
    return history[-1].never_updated


def test_norms_that_never_saw_a_batch() -> None:
    assert never_updated(nn.BatchNorm1d(4)) == 1
    assert never_updated(nn.BatchNorm1d(4), trained=False) == 0  # a random network that is to stay as it is
    with_statistics = nn.BatchNorm1d(4)
    with_statistics.running_mean += 0.1  # of a checkpoint that has no count of batches
    assert never_updated(with_statistics) == 0
    assert never_updated(nn.BatchNorm1d(4, track_running_stats=False)) == 0
