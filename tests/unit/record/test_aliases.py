"""Batches in the data set's memory: found by address, watched by content, and the line that writes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset

from unstuck.record import aliases, facts, flight, governor, held, passes, writes


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(facts, "tell", lambda *about: said.append(about[1]))
    monkeypatch.setattr(passes, "_ledgers", {})
    monkeypatch.setattr(aliases, "_loaders", {})
    monkeypatch.setattr(governor, "allows", lambda: True)
    monkeypatch.setattr(flight, "steps", 0)
    monkeypatch.setattr(writes, "_compiles", lambda: False)
    yield said
    aliases.stop()


def names(dataset: Any, *places: int) -> set[str]:
    return {name for name, _ in held.held(dataset, set(places), set())}


class Store:
    def __init__(self, n: int = 40) -> None:
        self.rows = torch.arange(n * 4.0).reshape(n, 4)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> Any:
        return self.rows[i]

    def push(self, value: float) -> None:
        self.rows += value


def test_tensors_and_arrays_are_found_through_whatever_holds_them() -> None:
    class Odd:
        def __init__(self) -> None:
            self.parts = {"a": [np.zeros(3), (torch.zeros(2),)], "n": 3}
            self.text = "x"

        @property
        def never(self) -> None:
            raise AssertionError("a property was read")

    assert names(Odd()) == {".parts['a'][0]", ".parts['a'][1][0]"}
    nested = ConcatDataset([Subset(TensorDataset(torch.zeros(3)), [0, 1]), TensorDataset(torch.ones(2))])
    assert names(nested) == {".datasets[0].dataset.tensors[0]", ".datasets[1].tensors[0]"}
    for thing in (None, 3, [1, 2], object(), torch.zeros(0), np.array(["a", None])):
        assert names(thing) == set()


def test_of_long_lists_only_the_drawn_places() -> None:
    class Many:
        def __init__(self) -> None:
            self.store = [torch.zeros(1) for _ in range(2000)]

    assert names(Many(), 5, 1999, 7000) == {".store[5]", ".store[1999]"}
    assert names(Subset(Many(), list(range(1000, 2000))), 3) == {".dataset.store[3]", ".dataset.store[1003]"}


def test_where_an_array_lies_also_if_it_runs_backwards() -> None:
    whole: Any = np.zeros((6, 4), np.float32)
    all_of_it, turned = held.extent(whole), held.extent(whole[::-1, 1:3])
    assert all_of_it is not None
    assert turned is not None
    assert all_of_it.end - all_of_it.begin == whole.nbytes
    assert (turned.begin, turned.end) == (all_of_it.begin + 4, all_of_it.end - 4)


def run(
    dataset: Any,
    step: Callable[[Any], object],
    passes_made: int = 1,
    fetch: Callable[[], object] = int,
    **options: Any,
) -> aliases.Shares:
    """Draw from a loader as the seam does."""
    loader: Any = DataLoader(dataset, **options)
    book = passes.ledger_of(loader, ["a.py", 1, "f"])[0]
    for _ in range(passes_made):
        aliases.ended(book)
        iterator = iter(loader)
        drawn: list[Any] = []
        for number in range(len(loader)):
            aliases.asked()
            fetch()
            drawn.append((number, number, 0, number))
            batch = next(iterator)
            aliases.fetched()
            aliases.came(book, iterator, batch, drawn)
            step(batch)
        aliases.asked()
        aliases.ended(book)
    return aliases._loaders[book.number]


def double(x: Any) -> None:
    x *= 2.0


def test_a_view_that_is_written_to_is_told_once_with_its_line(told: list[dict[str, Any]]) -> None:
    run(Store(), double, batch_size=None)
    (said,) = told
    assert said["attribute"] == "rows"
    assert said["values"][1] == 2 * said["values"][0]
    assert said["version"][1] > said["version"][0]
    assert said["line"][1:] == [double.__code__.co_firstlineno + 1, "double"]
    assert sys.gettrace() is None


@pytest.mark.parametrize(
    ("step", "options"),
    [
        (double, {"batch_size": 4}),
        (lambda x: x * 2.0, {"batch_size": None}),
        (lambda x: x.mul_(1.0), {"batch_size": None}),
        (lambda x: x.to(torch.float64).mul_(2.0), {"batch_size": None}),
        (lambda x: x.clone().mul_(2.0), {"batch_size": None}),
        (lambda x: x.requires_grad_(), {"batch_size": None}),
    ],
    ids=("copied", "only read", "nothing changed", "another type", "a copy", "asks for its gradient"),
)
def test_nothing_is_said_of(step: Callable[[Any], object], options: Any, told: list[dict[str, Any]]) -> None:
    run(Store(), step, passes_made=2, **options)
    assert not told


def test_what_the_data_set_does_itself_is_its_own_affair(told: list[dict[str, Any]]) -> None:
    data = Store()

    def by_method(_: Any) -> None:
        data.push(1.0)

    def by_name(_: Any) -> None:
        data.rows[:] = data.rows + 1.0

    for step in (by_method, by_name):
        known = run(data, step, batch_size=None)
        assert known.own, step
        assert known.changes
    assert not told


def test_a_buffer_that_is_filled_anew_is_no_data(told: list[dict[str, Any]]) -> None:
    class Buffered(Store):
        def __getitem__(self, i: int) -> Any:
            return self.rows

    data = Buffered()
    known = run(data, double, batch_size=None, fetch=lambda: data.rows.fill_(1.0))
    assert known.own
    assert not told


def test_what_is_trained_itself_is_no_data(told: list[dict[str, Any]]) -> None:
    class Codes(Store):
        def __init__(self) -> None:
            super().__init__()
            self.rows = torch.nn.Parameter(self.rows)

    data = Codes()

    def train(x: Any) -> None:
        with torch.no_grad():
            x.mul_(0.9)

    run(data, train, batch_size=None)
    assert not told


def test_arrays_handed_out_whole_again_and_again(told: list[dict[str, Any]]) -> None:
    class Whole:
        def __init__(self) -> None:
            self.table: Any = np.ones((5, 3), np.float32)

        def __len__(self) -> int:
            return 1

        def __getitem__(self, i: int) -> Any:
            return self.table

    run(Whole(), double, passes_made=5, batch_size=None)
    (said,) = told
    assert said["attribute"] == "table"
    assert said["again"]
    assert said["version"][0] is None


def test_data_that_went_away_are_not_read(told: list[dict[str, Any]]) -> None:
    data = Store()

    def replaced(_: Any) -> None:
        data.rows = torch.zeros(40, 4)

    run(data, replaced, batch_size=None)
    assert not told


def test_no_line_is_followed_under_a_debugger(told: list[dict[str, Any]]) -> None:
    def debugger(*_: object) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        run(Store(), double, batch_size=None)
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(before)
    assert told[0]["line"] is None
