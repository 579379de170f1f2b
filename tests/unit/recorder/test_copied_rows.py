"""What a batch is put together of: rows of a tensor or array that the script holds."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch

from unstuck.recorder.probes.data import given_views
from unstuck.recorder.probes.data.copied_rows import MOST_WANTED, CopiedRows
from unstuck.recorder.probes.data.given_views import GivenViews


def stacked(data: Any, places: list[int]) -> torch.Tensor:
    return torch.stack([torch.as_tensor(data[place]) for place in places])


@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_rows_are_found_where_they_lie(kind: str) -> None:
    data: Any = torch.randn(50, 3, 4) if kind == "tensor" else np.random.randn(50, 3, 4)
    rows = CopiedRows()
    base, found = rows.find(stacked(data, [4, 9, 2]), [torch.randn(50, 5), data], None)
    assert base is data
    assert [row.tolist() for row in found] == [data[place].reshape(-1).tolist() for place in (4, 9, 2)]
    assert rows.find(stacked(data, [7]), [], data)[1][0].data_ptr() == torch.as_tensor(data)[7].data_ptr()


@pytest.mark.parametrize(
    "held",
    [
        torch.zeros(50, 12),  # other rows
        torch.randn(50, 12, requires_grad=True),  # they are trained
        torch.randn(3, 12),  # no more than the batch
        torch.randn(12, 50).T,  # not in order
        np.zeros((50, 12)),  # other numbers
        [1.0] * 600,
    ],
)
def test_what_is_no_table_of_such_rows(held: Any) -> None:
    rows = held.detach() if isinstance(held, torch.Tensor) and held.requires_grad else torch.randn(3, 12)
    assert CopiedRows().find(rows[:3].clone(), [held], None) == (None, [])


def test_it_looks_for_some_rows_only() -> None:
    data = torch.randn(200, 12)
    assert len(CopiedRows().find(data[:100].clone(), [data], None)[1]) == MOST_WANTED


def trained(probe: GivenViews, monkeypatch: pytest.MonkeyPatch, modify: Any) -> None:
    torch.manual_seed(0)
    data = torch.randn(40, 16)
    monkeypatch.setattr(given_views, "_held", lambda _frame: [data])
    for _ in range(6):
        order = torch.randperm(40).tolist()
        for begin in range(0, 40, 8):
            x = torch.stack([modify(data, place) for place in order[begin : begin + 8]])
            probe.graph_given(x, sys._getframe(), False)
    probe.remove()


def hidden(data: torch.Tensor, place: int) -> torch.Tensor:
    row = data[place]
    row[int(torch.randint(16, ()))] = 0.0
    return row


def test_rows_that_are_modified_before_they_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = GivenViews()
    trained(probe, monkeypatch, hidden)
    assert probe.again > 100
    assert probe.other == 0


@pytest.mark.parametrize("modify", [lambda data, place: data[place], lambda data, place: data[place] + 1])
def test_rows_that_are_left_alone(modify: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = GivenViews()
    trained(probe, monkeypatch, modify)
    assert probe.again == probe.other == 0
