"""Batches that are views of one tensor, without a loader, and what becomes of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from unstuck.recorder.probes.data import given_views
from unstuck.recorder.probes.data.given_views import GivenViews
from unstuck.recorder.probes.learning import script_lines

Modify = Callable[[torch.Tensor], torch.Tensor]


@pytest.fixture
def probe() -> Iterator[GivenViews]:
    torch.manual_seed(0)
    made = GivenViews()
    yield made
    made.remove()


def add(x: torch.Tensor) -> torch.Tensor:
    x += 0.2 * torch.randn_like(x)
    return x


def hide(x: torch.Tensor) -> torch.Tensor:
    x[torch.rand(x.shape) < 0.1] = 0.0
    return x


def copy(x: torch.Tensor) -> torch.Tensor:
    return x + 0.2 * torch.randn_like(x)


def leave(x: torch.Tensor) -> torch.Tensor:
    return x


def refill(x: torch.Tensor) -> torch.Tensor:
    return x.normal_()


def train(probe: GivenViews, before: Modify, after: Modify = leave, epochs: int = 4) -> None:
    data = torch.randn(80, 6)
    for _ in range(epochs):
        for k in range(8):
            x = before(data[10 * k : 10 * k + 10])
            probe.graph_given(x, sys._getframe(), False)
            after(x)


@pytest.mark.parametrize("modify", [add, hide])
def test_places_that_come_changed(probe: GivenViews, modify: Modify) -> None:
    train(probe, modify)
    assert probe.again >= given_views.MIN_AGAIN
    assert (probe.other, probe.same) == (0, 0)


def test_numbers_of_words(probe: GivenViews) -> None:
    words = torch.randint(0, 50, (80, 12))
    for _ in range(3):
        for k in range(8):
            x = words[10 * k : 10 * k + 10]
            x[torch.rand(x.shape) < 0.1] = 50
            probe.graph_given(x, sys._getframe(), False)
    assert (probe.again, probe.other, probe.same) == (16, 0, 0)


@pytest.mark.parametrize("modify", [leave, copy])
def test_data_that_is_left_alone(probe: GivenViews, modify: Modify) -> None:
    train(probe, modify)
    assert probe.again == probe.other == 0


def test_a_buffer_that_is_filled_anew(probe: GivenViews) -> None:
    train(probe, refill)
    assert probe.again == 0
    assert probe.other > given_views.MIN_AGAIN


def test_another_tensor_begins_from_the_start(probe: GivenViews) -> None:
    train(probe, add, epochs=2)
    train(probe, leave, epochs=1)
    assert (probe.looks, probe.again) == (8, 0)


def test_nothing_of_the_training_is_kept_alive(probe: GivenViews) -> None:
    data: Any = torch.randn(80, 6)
    probe.graph_given(data[:10], sys._getframe(), False)
    gone = torch._C._WeakTensorRef(data)
    del data
    assert gone.expired()


def held(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An array that a function of the user's has a name for."""
    data = np.random.default_rng(0).normal(size=(80, 6))
    monkeypatch.setattr(script_lines, "user_frames", lambda frame: iter([frame]))
    monkeypatch.setattr(script_lines, "names_in", lambda _frame: {"data": data})
    return data


def test_slices_of_an_array(probe: GivenViews, monkeypatch: pytest.MonkeyPatch) -> None:
    data = held(monkeypatch)
    for _ in range(3):
        for k in range(8):
            x = add(torch.from_numpy(data[10 * k : 10 * k + 10]))
            probe.graph_given(x, sys._getframe(), False)
    assert (probe.again, probe.other, probe.same) == (16, 0, 0)
    assert probe._base() is data


@pytest.mark.parametrize("made", [np.copy, lambda rows: rows[[0, 3, 5]]])
def test_copies_of_an_array(probe: GivenViews, monkeypatch: pytest.MonkeyPatch, made: Any) -> None:
    data = held(monkeypatch)
    for k in range(8):
        probe.graph_given(add(torch.from_numpy(made(data[10 * k : 10 * k + 10]))), sys._getframe(), False)
    assert probe.looks == 0
