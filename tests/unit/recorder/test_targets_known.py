"""Which part of a batch a loss was given as its target."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from unstuck.recorder.probes.data import batch_statistics, statistics


def known(monkeypatch: pytest.MonkeyPatch, batch: list[Any], *targets: Any) -> list[str]:
    loader: Any = SimpleNamespace(gathered=statistics.Gathered(), matched=0)
    parts = [(f"[{place}]", weakref.ref(part)) for place, part in enumerate(batch)]
    monkeypatch.setattr(batch_statistics, "_now", (loader, parts))
    for target in targets:
        batch_statistics.target_is(target, "mse")
    return list(loader.gathered.targets)


def test_each_target_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = [torch.randn(20, 3), torch.randn(20), torch.randn(20)]
    assert known(monkeypatch, batch, batch[2].double().unsqueeze(1), batch[1], batch[1]) == ["[2]", "[1]"]
    assert known(monkeypatch, batch, torch.randn(20)) == []


def test_a_target_without_its_gaps_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = torch.randn(20)
    labels[::3] = float("nan")
    batch = [torch.randn(20, 3), torch.randn(20), labels]
    assert known(monkeypatch, batch, labels[~labels.isnan()]) == ["[2]"]
    assert known(monkeypatch, batch, torch.randn(13)) == []


def test_no_more_is_compared_than_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    large = torch.zeros(1 << 18)
    assert known(monkeypatch, [large], large.clone()) == []
    assert known(monkeypatch, [large], large) == ["[0]"]
