"""The probe of learning, driven by hand around real trainings: what its record says of each."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from unstuck.recorder import flight, governor, journal
from unstuck.recorder import layout as at
from unstuck.recorder.probes.learning.learning_probe import LearningProbe
from unstuck.recorder.probes.learning.naming import Names
from unstuck.recorder.records.learning import Learning, Parameter


class Run:
    """Stands for the hooks: every step is sampled."""

    def __init__(self) -> None:
        self.probe = LearningProbe()
        self.counts = SimpleNamespace(steps={}, clears={}, all_clears=0)

    def built(self, optimizer: Any) -> Any:
        self.counts.steps[id(optimizer)] = 0
        self.probe.optimizer_built(optimizer, sys._getframe(1), self.counts)
        return optimizer

    def backward(self, loss: Any, depth: int = 1) -> None:
        frame = sys._getframe(depth)
        flight.state[flight.BACKWARDS] += 1
        low, high = self.probe.limits()
        if low <= loss.item() <= high:
            self.probe.losses_read([loss.item()], frame)
        else:
            self.probe.loss_stands_out(loss, loss.item(), frame)
        self.probe.before_backward(loss, frame)
        loss.backward()

    def step(self, optimizer: Any, leads: bool = True) -> None:
        self.probe.before_step(optimizer)
        optimizer.step()
        self.counts.steps[id(optimizer)] += 1
        flight.state[flight.STEPS] += leads
        self.probe.after_step(optimizer, self.counts.steps[id(optimizer)])

    def train(self, optimizer: Any, losses: Iterator[Any]) -> Learning:
        for loss in losses:
            optimizer.zero_grad()
            self.backward(loss)
            self.step(optimizer)
        return self.record()

    def record(self) -> Learning:
        self.probe.measured.inventory.look()
        return self.probe.measured.record()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    torch.manual_seed(0)
    monkeypatch.setattr(flight, "state", [1] + [0] * (len(flight.state) - 1))
    monkeypatch.setattr(governor, "ADVANCE", 60.0)  # whatever the machine has to do besides
    monkeypatch.setattr(governor.governor, "spent", 0.0)
    monkeypatch.setattr(governor.governor, "by_probe", {})
    made = Run()
    yield made
    made.probe.remove()


class Net(nn.Module):  # type: ignore[misc]  # mypy does not follow torch
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 16), nn.Linear(16, 1)

    def forward(self, x: Any) -> Any:
        return self.fc2(torch.relu(self.fc1(x)))

    def __getattr__(self, name: str) -> Any:
        assert sys._getframe(1).f_globals["__name__"].startswith(("torch", __name__)), "it is run by us"
        return super().__getattr__(name)

    def __eq__(self, other: object) -> bool:
        raise AssertionError("it is run by us")

    __hash__ = nn.Module.__hash__


def by_name(learning: Learning) -> dict[str, Parameter]:
    return {parameter.name: parameter for parameter in learning.parameters}


def test_a_healthy_training(run: Run) -> None:
    model = Net()
    optimizer = run.built(torch.optim.SGD(model.parameters(), lr=0.05))
    x, y = torch.randn(64, 4), torch.randn(64, 1)
    learning = run.train(optimizer, (functional.mse_loss(model(x), y) for _ in range(20)))
    (loss,), (known,), (built,), (head,) = learning.losses, learning.optimizers, learning.built, learning.heads
    assert (loss.count, loss.nonfinite, learning.steps, learning.backwards) == (20, 0, 20, 20)
    assert loss.points[0][0] == 0
    assert (known.kind, known.steps, known.lrs, len(known.cosines)) == ("SGD", 20, [(0, 0.05)], 19)
    assert (built.stale, built.checked, built.moved) == (0, 19, 4)
    parameters = by_name(learning)
    assert sorted(parameters) == ["model.fc1.bias", "model.fc1.weight", "model.fc2.bias", "model.fc2.weight"]
    weight = parameters["model.fc1.weight"]
    assert (weight.module, weight.owner, weight.held, weight.seen, weight.none, weight.in_graph) == (
        "Linear",
        0,
        0,
        20,
        0,
        20,
    )
    assert [step for step, _ in weight.grads] == [step for step, _ in weight.moves] == list(range(20))
    assert (head.op, head.bare, head.shape, head.target.batches) == ("mse", True, [64, 1], 20)
    assert head.target.constant == pytest.approx(float(y.var(correction=0)), rel=1e-3)
    (relu,) = learning.activations
    assert (relu.kind, relu.name, relu.units, relu.batches) == ("relu", "model.fc1", 16, 20)
    assert learning.observed >= 1
    assert weight.called == learning.observed


def test_a_logarithm_of_zero(run: Run) -> None:
    model = nn.Linear(4, 3)
    optimizer = run.built(torch.optim.SGD(model.parameters(), lr=0.01))
    x = torch.randn(8, 4)

    def losses() -> Iterator[Any]:
        for step in range(6):
            chances = torch.softmax(model(x), dim=1)
            masked = chances * (torch.arange(8)[:, None] != 5) if step >= 3 else chances
            yield -masked.log().mean()

    learning = run.train(optimizer, losses())
    assert (learning.losses[0].count, learning.losses[0].nonfinite_step) == (3, 3)
    (birth,) = learning.births
    assert (birth.step, birth.before, birth.late, math.isinf(birth.value)) == (3, 3, False, True)
    operation = birth.operations[0]
    assert (operation.operation, operation.why, operation.made, operation.rows) == ("log", "log-of-zero", True, [5])
    assert (operation.layer, operation.count, operation.of) == ("model", 3, 24)
    assert operation.site is not None
    assert "masked.log()" in Path(__file__).read_text().splitlines()[operation.site[1] - 1]


def test_data_that_is_no_number(run: Run) -> None:
    model = nn.Linear(4, 1)
    optimizer = run.built(torch.optim.SGD(model.parameters(), lr=0.01))
    features = torch.randn(8, 4)
    features[2, 1] = float("nan")
    run.train(optimizer, (model(features).mean() for _ in range(1)))
    (birth,) = run.record().births
    (given,) = birth.outside
    assert (given.role, given.nan, given.rows, given.columns) == ("mat1", 1, [2], [1])
    assert any(each.name == "features" and each.address == given.address for each in birth.inputs)


def test_a_slope_without_end_is_seen_before_the_gradient_is_nan(run: Run) -> None:
    model = nn.Linear(4, 1)
    optimizer = run.built(torch.optim.SGD(model.parameters(), lr=0.01))
    x = torch.randn(8, 4)

    def losses() -> Iterator[Any]:
        for step in range(6):
            out = model(x if step != 4 else torch.zeros(8, 4)) - (model.bias if step == 4 else 0)
            yield (out * out).sqrt().mean()
            assert run.probe.limits() == (float("inf"), float("-inf")), "each loss is wanted with its graph"

    learning = run.train(optimizer, losses())
    assert learning.steep is not None
    assert (learning.steep.why, learning.steep.step, learning.steep.backward) == ("slope-of-root", 4, True)
    (birth,) = learning.births
    assert birth.broken_parameters
    assert [each.why for each in birth.operations] == ["slope-of-root"]


def test_a_loss_that_stands_out(run: Run) -> None:
    model = nn.Linear(4, 1)
    optimizer = run.built(torch.optim.SGD(model.parameters(), lr=1e-12))
    x, y = torch.randn(16, 4), torch.randn(16, 1)

    def losses() -> Iterator[Any]:
        for step in range(130):
            batch = x + 0.1 * torch.randn(16, 4)
            if step == 120:
                batch[3] *= 1000
            yield functional.mse_loss(model(batch), y)

    learning = run.train(optimizer, losses())
    (spike,) = learning.spikes
    assert (spike.step, spike.site) == (120, learning.losses[0].site)
    assert spike.value > 12 * spike.spread + spike.usual
    assert spike.rows == [] or spike.rows is None, "the batch is a name of the generator, not of who calls backward"


class Cut(nn.Module):  # type: ignore[misc]  # mypy does not follow torch
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x: Any) -> Any:
        return self.head(torch.relu(self.encoder(x).detach()))


def test_a_graph_that_is_cut(run: Run) -> None:
    model = Cut()
    optimizer = run.built(torch.optim.SGD(model.parameters(), lr=0.01))
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    learning = run.train(optimizer, (functional.mse_loss(model(x), y) for _ in range(30)))
    cut = learning.cut
    assert cut is not None
    assert (cut.lost, cut.begins, cut.ends, cut.op) == (["model.encoder"], "model.encoder", "model.head", "detach")
    assert cut.site is not None
    assert ".detach()" in Path(__file__).read_text().splitlines()[cut.site[1] - 1]
    encoder = by_name(learning)["model.encoder.weight"]
    assert (encoder.none, encoder.in_graph, encoder.moved) == (encoder.seen, 0, False)


def test_two_optimizers(run: Run) -> None:
    generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
    of_generator = run.built(torch.optim.Adam(generator.parameters(), lr=1e-3))
    of_critic = run.built(torch.optim.Adam(critic.parameters(), lr=2e-3))
    for _ in range(12):
        fake = generator(torch.randn(8, 2))
        of_critic.zero_grad()
        run.backward(
            functional.softplus(critic(fake.detach())).mean() + functional.softplus(-critic(torch.randn(8, 4))).mean()
        )
        run.step(of_critic)
        of_generator.zero_grad()
        run.backward(functional.softplus(-critic(fake)).mean())
        run.step(of_generator, leads=False)
    learning = run.record()
    assert [loss.count for loss in learning.losses] == [12, 12]
    assert [(each.kind, each.steps) for each in learning.optimizers] == [("Adam", 12), ("Adam", 12)]
    owners = {name: (each.owner, each.held) for name, each in by_name(learning).items()}
    assert owners["critic.weight"] == (0, 1)
    assert owners["generator.weight"] == (1, 0)


def test_updates_written_by_hand(run: Run) -> None:
    weight, bias = torch.randn(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    for made in range(1, 11):
        if made > 1:
            run.probe.before_step(None)
        run.backward(functional.mse_loss(x @ weight + bias, y))
        run.probe.after_backward()
        with torch.no_grad():
            for parameter in (weight, bias):
                parameter -= 0.1 * (parameter.grad + 0.02 * parameter)
                parameter.grad = None
        run.probe.after_step(None, made)
        flight.state[flight.STEPS] += 1
    learning = run.record()
    (by_hand,) = learning.optimizers
    assert (by_hand.number, by_hand.kind, by_hand.steps, len(by_hand.cosines)) == (0, "", 10, 9)
    assert by_hand.lrs == [(1, 0.1)]
    assert by_hand.settings == {"momentum": 0.0, "weight_decay": 0.02}
    parameters = by_name(learning)
    assert sorted(parameters) == ["bias", "weight"]
    for each in parameters.values():
        assert (each.owner, each.is_parameter, each.none) == (0, False, 0)
        assert (len(each.grads), len(each.weights), len(each.moves)) == (10, 10, 10)
        assert each.moves[0][1] == pytest.approx(0.1 * each.grads[0][1], rel=0.2)


def test_a_rate_of_an_update_by_hand_that_is_gone(run: Run) -> None:
    weight = torch.randn(4, 1, requires_grad=True)
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    for made in range(1, 7):
        if made > 1:
            run.probe.before_step(None)
        run.backward(functional.mse_loss(x @ weight, y))
        run.probe.after_backward()
        with torch.no_grad():
            weight -= (0.1 if made < 4 else 1e-12) * weight.grad
            weight.grad = None
        run.probe.after_step(None, made)
        flight.state[flight.STEPS] += 1
    (by_hand,) = run.record().optimizers
    assert by_hand.lrs == [(1, 0.1), (4, 0.0)]


def found_from_here() -> Names:
    names = Names()
    names.find(sys._getframe(1))
    return names


class Trainer:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.nets = {"g": nn.Linear(1, 1)}
        self.schedule = [nn.Linear(1, 1)]

    def find(self) -> Names:
        return found_from_here()

    @property
    def never(self) -> None:
        raise AssertionError("it is run by us")


def test_names_by_which_the_training_reaches_its_modules() -> None:
    trainer = Trainer(Net())
    trainer.model.kept = [nn.Linear(2, 2)]  # a plain list: `parameters()` does not look into it
    names = trainer.find()
    assert names.name(trainer.model.fc1.weight) == "self.model.fc1.weight"
    assert names.name(trainer.model.kept[0].weight) == "self.model.kept[0].weight"
    assert names.name(trainer.nets["g"].weight) == "self.nets['g'].weight"
    assert names.name(trainer.schedule[0].bias) == "self.schedule[0].bias"
    hidden = nn.Sequential(nn.Linear(3, 3))
    names.saw(hidden)
    assert names.stale
    names.find(None)
    assert names.name(hidden[0].weight) == "Sequential.0.weight"


def test_the_whole_is_told_at_the_end_and_a_child_begins_anew(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[Any, str]] = []
    monkeypatch.setattr(journal, "replace", lambda record, suffix: told.append((record, suffix)))
    model = nn.Linear(4, 1)
    optimizer = run.built(torch.optim.SGD(model.parameters(), lr=0.01))
    x = torch.randn(8, 4)
    run.train(optimizer, ((model(x) ** 2).mean() for _ in range(3)))
    assert told == []
    run.probe.last()
    ((record, suffix),) = told
    assert (record.losses[0].count, suffix) == (3, at.LEARNING)
    run.probe.forget()
    assert run.probe.measured.record().losses == []
    run.probe.last()
    assert len(told) == 1, "a child that trains nothing tells nothing"


def test_clipping_counts_the_calls_between_two_looks(run: Run) -> None:
    run.probe.gradients_clipped(torch.tensor(4.0), 1.0, 1)
    run.probe.gradients_clipped(torch.tensor(0.5), 1.0, 1)
    run.probe.gradients_clipped(torch.tensor(2.0), 1.0, 8)
    clips = run.probe.measured.record().clips
    assert clips is not None
    assert (clips.calls, clips.clipped, clips.hardest, clips.sum_ratio) == (10, 9, 4.0, 20.0)


def test_what_a_closure_computes_belongs_to_its_step(run: Run) -> None:
    """As Lightning calls it: the gradients are made within the step."""
    model = torch.nn.Linear(3, 2)
    optimizer = run.built(torch.optim.SGD(model.parameters(), lr=0.5))
    norms, grads = [], []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3)).pow(2).mean()
        run.backward(loss)
        grads.append(float(model.weight.grad.norm()))
        return loss

    for step in range(3):
        norms.append(float(model.weight.detach().norm()))
        run.probe.before_step(optimizer, True)
        optimizer.step(closure)
        flight.state[flight.STEPS] += 1
        run.probe.after_step(optimizer, step + 1)
    weight = next(each for each in run.record().parameters if len(each.shape) == 2)
    assert weight.weights == pytest.approx(norms)
    assert [step for step, _ in weight.grads] == [0, 1, 2]
    assert [norm for _, norm in weight.grads] == pytest.approx(grads)
    assert weight.none == 0
