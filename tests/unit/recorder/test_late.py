"""What is read late comes in order, small enough, and decides what it was asked for."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import pytest
import torch

from unstuck.recorder import governor, gpu, guard
from unstuck.recorder.probes.learning import activations, optimizers, targets
from unstuck.recorder.probes.learning.parameters import Parameters
from unstuck.recorder.probes.learning.updates import Updates


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> gpu.Copies:
    """Every tensor counts as one on a GPU."""
    monkeypatch.setattr(gpu, "away", lambda _: True)
    monkeypatch.setattr(governor, "governor", governor.Governor())
    return gpu.Copies()


def test_what_was_asked_first_comes_first(copies: gpu.Copies) -> None:
    came: list[Any] = []
    tensor = torch.zeros(2)
    copies.bring([tensor], lambda parts: came.append(parts[0].tolist()))
    copies.read([torch.tensor(3.0), torch.tensor(True)], came.append)
    tensor += 1  # the copy was made before
    assert came == []
    copies.collect()
    assert came == [[0.0, 0.0], [3.0, 1.0]]


def test_too_many_on_their_way(copies: gpu.Copies) -> None:
    asked = [copies.read([torch.tensor(1.0)], lambda _: None) for _ in range(gpu.MANY + 3)]
    assert asked == [True] * gpu.MANY + [False] * 3


def test_who_cannot_take_its_copy_is_switched_off_alone(copies: gpu.Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    switched: list[str] = []
    monkeypatch.setattr(guard, "off", lambda probe, _: switched.append(probe))
    came: list[list[float]] = []
    copies.bring([torch.zeros(1)], lambda _: 1 / 0, "data")
    copies.read([torch.tensor(2.0)], came.append)
    copies.collect()
    assert (switched, came) == (["data"], [[2.0]])


def test_a_forked_child_frees_nothing_of_its_parents(copies: gpu.Copies) -> None:
    """Events and pinned memory are given back to a driver that does not run there: the child would be aborted."""
    event, noted = torch.zeros(1), {"first": torch.zeros(1)}
    alive = weakref.ref(event), weakref.ref(noted["first"])
    copies.read([torch.tensor(1.0)], event.set_)
    del event
    copies.forget()
    copies.abandon(noted)
    del noted
    assert not copies._waiting
    assert all(each() is not None for each in alive)


@pytest.mark.parametrize(("shape", "kept"), [((64, 100), -1), ((8, 16, 32, 32), 1), ((1, 5000), -1), ((7,), 0)])
def test_a_part_keeps_the_units(shape: tuple[int, ...], kept: int) -> None:
    part = gpu.thinned(torch.zeros(shape), 1000, kept)
    assert part.shape[kept] == shape[kept]
    assert part.numel() <= 1000 or part.numel() == shape[kept]


def test_dead_units_from_copies() -> None:
    layer = activations.Layer("relu", "model.0", [4, 3])
    layer.take(torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]))
    assert layer.record(0, None).dead == 1


def test_targets_and_the_ids_they_came_from(copies: gpu.Copies) -> None:
    given = targets.TargetStats("mse", copies)
    ids = torch.tensor([3, 1, 2, 1])
    target = ids.float()
    given.take(target, torch.randn(4))

    def look() -> None:
        given.look_for_ids(target, sys._getframe(1))

    def train() -> None:
        labels = ids
        look()
        assert labels is ids

    train()
    assert given.record().count == 0
    copies.collect()
    assert (given.record().max, given.record().ids) == (3.0, "labels")


def test_rows_alike_on_a_gpu(copies: gpu.Copies) -> None:
    weight = torch.nn.Parameter(torch.full((4, 6), 0.1))
    known = Parameters(copies)
    entry = known.add(weight)
    known.begin([])
    rows = [entry.rows]
    copies.collect()
    assert [*rows, entry.rows] == ["", "same"]
    still = []
    for _ in range(2):  # the first look asks for it, the second has the answer
        entry.look({}, copies)
        copies.collect()
        still.append(entry.record("", "").still_alike)
    assert still == [False, True]


@pytest.mark.parametrize(("flags", "stale"), [([[1.0], [1.0]], 1), ([[1.0], [0.0]], 0)])
def test_gradients_are_stale_if_no_look_found_them_cleared(flags: list[list[float]], stale: int) -> None:
    optimizer = optimizers.Optimizer(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1))
    between = optimizers.Between(optimizer)
    between.looks = 2
    between.take(flags[0])
    between.close()
    assert optimizer.checked == 0, "one answer is still to come"
    between.take(flags[1])
    assert (optimizer.checked, optimizer.stale) == (1, stale)


def test_gradients_that_could_not_be_looked_at_are_not_stale(copies: gpu.Copies) -> None:
    weight = torch.nn.Parameter(torch.zeros(1))
    weight.grad = torch.ones(1)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    entry = optimizers.Optimizer(optimizer)
    entry.stepped()
    for _ in range(gpu.MANY):
        copies.read([torch.tensor(1.0)], lambda _: None)
    entry.look_for_gradients(copies)
    entry.stepped()
    copies.collect()
    assert (entry.checked, entry.stale) == (0, 0)
    entry.look_for_gradients(copies)
    entry.stepped()
    copies.collect()
    assert (entry.checked, entry.stale) == (1, 1)


class Marked(torch.Tensor):  # type: ignore[misc]  # mypy does not follow torch
    pass


def test_only_torchs_own_kinds_are_looked_at() -> None:
    with torch.inference_mode():
        frozen = torch.zeros(2)
    several = [torch.zeros(2), torch.nn.Parameter(torch.zeros(2)), torch.zeros(2).as_subclass(Marked), frozen]
    assert [gpu.plain(each) for each in several] == [True, True, False, False]


def test_what_came_from_a_model_that_is_gone_is_let_go() -> None:
    late = gpu.Copies()
    parameters = Parameters(late)
    known = optimizers.Optimizers(parameters, late)
    updates = Updates(parameters, known, late)
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    entry = known.known(optimizer)
    updates.before(optimizer)
    updates.after(optimizer, entry)
    assert [len(each.moves) for each in parameters.known.values()] == [1, 1]
    del model, optimizer
    gc.collect()
    assert (entry.chosen, entry.last_move) == ([], None)
    other = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    entry.key = id(other)  # as if it had lain there
    assert known.known(other) is not entry
    assert entry.key == 0, "the counts of the new one are not its own"
