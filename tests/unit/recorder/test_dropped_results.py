"""Calls that stand by themselves, though all they do is give a result."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
import torch

from unstuck.recorder import user_code
from unstuck.recorder.probes.learning import cut_search

x, place = torch.zeros(3), torch.tensor([0])


def dropped() -> None:
    x.index_add(0, place, torch.ones(1))
    torch.clamp(x, 0, 1)


def used() -> list[object]:
    kept = [x.add(1), torch.clamp(x, 0, 1).mul(2)]
    kept.append(x.mul(2))
    return kept


def in_place() -> None:
    x.index_add_(0, place, torch.ones(1))
    x.add_(1)


def no_tensor() -> None:
    {1}.add(2)
    [1].copy()


@pytest.mark.parametrize(
    ("function", "names"), [(dropped, ["index_add", "clamp"]), (used, []), (in_place, []), (no_tensor, [])]
)
def test_results_that_nobody_gets(
    function: Callable[[], object], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_code, "is_user_file", lambda file: file == __file__)
    before, events = sys.getprofile(), cut_search.Events()
    sys.setprofile(None)
    try:
        events.start()
        function()
        events.stop()
    finally:
        sys.setprofile(before)
    assert [event.name for event in events.dropped] == names
