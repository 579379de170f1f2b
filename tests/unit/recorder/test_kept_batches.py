"""Batches that wait and states that are kept, in one memory or each in its own."""

from __future__ import annotations

import queue
import sys
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.unit.recorder.test_nothing_is_run import KINDS
from tests.unit.recorder.untouchable import OddList, watching
from unstuck.recorder.probes.data import kept_batches
from unstuck.recorder.probes.data.kept_batches import KeptBatches

GIVEN = torch.randn(16, 4)  # what the model gets: rows of four


@pytest.fixture
def probe() -> Iterator[KeptBatches]:
    made = KeptBatches()
    yield made
    made.remove()


def look(probe: KeptBatches, held: Any, given: torch.Tensor = GIVEN) -> None:
    """What is `held` is reached from this frame."""
    assert held is not None
    probe.graph_given(given, sys._getframe(), False)


@pytest.mark.parametrize("kept", [[], deque(maxlen=40)])
@pytest.mark.parametrize("copies", [False, True])
def test_transitions(probe: KeptBatches, kept: Any, copies: bool) -> None:
    kept.clear()
    state: Any = np.zeros(4, dtype=np.float32)
    for number in range(80):
        before = state.copy() if copies else state
        state += 1
        kept.append((before, number, state.copy() if copies else state))
        look(probe, SimpleNamespace(memory=kept))
    assert probe.changes == 0 if copies else probe.changes >= kept_batches.MIN_CHANGES


@pytest.mark.parametrize("wide", [4, 3])
def test_states_alone(probe: KeptBatches, wide: int) -> None:
    state, kept = torch.zeros(wide), []
    for _ in range(60):
        kept.append(state)
        look(probe, kept)
        state += 1
    assert (probe.changes > 0) == (wide == 4), "others are no rows of what the model gets"


@pytest.mark.parametrize("buffers", [1, 2, 8])
def test_a_queue_of_buffers(probe: KeptBatches, buffers: int) -> None:
    memory: list[Any] = [np.zeros((16, 4), dtype=np.float32) for _ in range(buffers)]
    ready: queue.Queue[Any] = queue.Queue()
    for number in range(40):
        buffer = memory[number % buffers]
        buffer += 1
        ready.put((torch.from_numpy(buffer), number))
        if number >= 5:
            look(probe, {"ready": ready}, ready.get()[0])
    assert (probe.changes > 0) == (buffers < 6)


def test_buffers_used_in_turn(probe: KeptBatches) -> None:
    buffers = [torch.zeros(16, 4) for _ in range(3)]
    for number in range(40):
        buffer = buffers[number % 3]
        buffer += 1
        views = [buffer.view(16, 4)] * 4
        look(probe, (buffers, deque(buffers), views), buffer)
    assert probe.changes == 0


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_run(probe: KeptBatches, kind: str) -> None:
    thing = KINDS[kind]()
    kept = (thing, [(thing, GIVEN)] * 4, OddList([thing, GIVEN]), {"things": deque([thing, [thing]])})
    with watching() as ran:
        look(probe, kept)
        look(probe, kept)
    assert ran == []
