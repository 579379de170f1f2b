"""What is read late comes in order, small enough, and decides what it was asked for."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from unstuck.recorder import governor, gpu
from unstuck.recorder.probes.learning import activations, first_weights, ownership, targets, updates


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every tensor counts as one on a GPU."""
    monkeypatch.setattr(gpu, "away", lambda _: True)
    yield
    gpu._waiting.clear()
    gpu.used, governor.loads = False, 0.0


@pytest.mark.usefixtures("far_away")
def test_what_was_asked_first_comes_first() -> None:
    came: list[Any] = []
    tensor = torch.zeros(2)
    gpu.bring([tensor], lambda copies: came.append(copies[0].tolist()))
    gpu.read([torch.tensor(3.0), torch.tensor(True)], came.append)
    tensor += 1  # the copy was made before
    assert came == []
    gpu.collect()
    assert came == [[0.0, 0.0], [3.0, 1.0]]


@pytest.mark.usefixtures("far_away")
def test_too_many_on_their_way() -> None:
    asked = [gpu.read([torch.tensor(1.0)], lambda _: None) for _ in range(gpu.MANY + 3)]
    assert asked == [True] * gpu.MANY + [False] * 3


@pytest.mark.usefixtures("far_away")
def test_a_forked_child_frees_nothing_of_its_parents() -> None:
    """Events and pinned memory are given back to a driver that does not run there: the child would be aborted."""
    event, noted = torch.zeros(1), {"first": torch.zeros(1)}
    alive = weakref.ref(event), weakref.ref(noted["first"])
    gpu.read([torch.tensor(1.0)], event.set_)
    del event
    try:
        gpu.forget()
        gpu.abandon(noted)
        assert (len(gpu._waiting), noted) == (0, {})
        assert all(each() is not None for each in alive)
    finally:
        gpu._parents.clear()


@pytest.mark.parametrize(("shape", "kept"), [((64, 100), -1), ((8, 16, 32, 32), 1), ((1, 5000), -1), ((7,), 0)])
def test_a_part_keeps_the_units(shape: tuple[int, ...], kept: int) -> None:
    part = gpu.thinned(torch.zeros(shape), 1000, kept)
    assert part.shape[kept] == shape[kept]
    assert part.numel() <= 1000 or part.numel() == shape[kept]


@pytest.mark.usefixtures("far_away")
def test_dead_units_from_copies() -> None:
    layer = activations.Layer("relu", "model.0", [4, 3])
    activations._take_all([layer], [torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])])
    assert layer.plain(0)["dead"] == 1


@pytest.mark.usefixtures("far_away")
def test_targets_and_the_ids_they_came_from() -> None:
    given = targets.Given("mse")
    ids = torch.tensor([3, 1, 2, 1])
    target = ids.float()
    given.take(target, torch.randn(4), 1, None)

    def look() -> None:
        given.look_for_ids(target, sys._getframe(1))

    def train() -> None:
        labels = ids
        look()
        assert labels is ids

    train()
    assert given.target()["count"] == 0
    gpu.collect()
    assert (given.target()["max"], given.ids) == (3.0, "labels")


@pytest.mark.usefixtures("far_away")
def test_rows_alike_on_a_gpu() -> None:
    weight = torch.nn.Parameter(torch.full((4, 6), 0.1))
    state = first_weights.State(weight)
    first_weights.bring([state])
    told = [state.alike]
    gpu.collect()
    told += [state.alike, state.still_alike()]  # the latter is asked for only now
    gpu.collect()
    assert [*told, state.still_alike()] == [False, True, False, True]


@pytest.mark.parametrize(("flags", "stale"), [([[1.0], [1.0]], 1), ([[1.0], [0.0]], 0)])
def test_gradients_are_stale_if_no_look_found_them_cleared(flags: list[list[float]], stale: int) -> None:
    optimizer = ownership.Built(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), None)
    checks = ownership.Checks(optimizer)
    checks.awaited = 2
    checks.arrived(flags[0])
    checks.closed = True
    checks.settle()
    assert optimizer.tried == 0, "one answer is still to come"
    checks.arrived(flags[1])
    assert (optimizer.tried, optimizer.stale) == (1, stale)


class Marked(torch.Tensor):  # type: ignore[misc]  # mypy does not follow torch
    pass


def test_only_torchs_own_kinds_are_looked_at() -> None:
    with torch.inference_mode():
        frozen = torch.zeros(2)
    several = [torch.zeros(2), torch.nn.Parameter(torch.zeros(2)), torch.zeros(2).as_subclass(Marked), frozen]
    assert [gpu.plain(each) for each in several] == [True, True, False, False]


def test_what_came_from_a_model_that_is_gone_is_let_go() -> None:
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    entry = updates.known(optimizer)
    before = updates.before(optimizer)
    updates.after(optimizer, before)
    assert len(before) == 2
    del model, optimizer, before
    gc.collect()
    assert (entry.chosen, entry.last) == ([], None)
    assert entry not in updates._by_identity.values()
