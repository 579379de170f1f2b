"""What copying batches to a GPU takes: told once, after three of them. The copies are made up here."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from unstuck.recorder import dispatch, flight, gpu, journal
from unstuck.recorder.loading import Loading
from unstuck.recorder.probes.pace import gpu_copies
from unstuck.recorder.probes.pace.gpu_copies import GpuCopies
from unstuck.recorder.records import loaders

BATCH = [torch.zeros(300, 1000), torch.zeros(300)]
SIZE = 1_201_200


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    said: list[Any] = []
    monkeypatch.setattr(journal, "tell", said.append)
    monkeypatch.setattr(gpu.copies, "used", True)
    monkeypatch.setattr(gpu_copies, "_may", lambda _: True)
    monkeypatch.setattr(GpuCopies, "_copy", lambda *_: (4e-9, 1e-9, 2e-9))
    layer = SimpleNamespace(away=True, shape=[300, 1000])
    monkeypatch.setitem(dispatch._dispatch.probes, "data", SimpleNamespace(given={"net.0": layer}))
    before = list(flight.state)
    yield said
    flight.state[:] = before


def draw(probe: GpuCopies, known: Loading, count: int, batch: Any) -> None:
    for _ in range(count):
        known.drawn += 1
        flight.state[flight.STEPS] += 1
        probe.batch_looked_at(known, None, batch)


def test_three_copies_are_told_once(told: list[Any]) -> None:
    probe, known = GpuCopies(), Loading(0)
    draw(probe, known, gpu_copies.MIN_DRAWN + gpu_copies.MIN_APART - 1, BATCH)
    assert not told, "the first steps are slower, and the last copy is made some steps after the first"
    draw(probe, known, 50, BATCH)
    (record,) = told
    assert type(record) is loaders.GpuCopies
    assert (record.bytes, record.moved, record.trains) == (SIZE, True, True)
    assert (record.ordinary, record.pinned, record.pinning) == pytest.approx((SIZE * 4e-9, SIZE * 1e-9, SIZE * 2e-9))
    assert 0 < record.period < 1


def test_small_batches_are_left_alone(told: list[Any]) -> None:
    draw(GpuCopies(), Loading(0), 100, [torch.zeros(300)])
    assert not told


def test_without_a_gpu_nothing_is_copied(told: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu.copies, "used", False)
    draw(GpuCopies(), Loading(0), 100, BATCH)
    assert not told
