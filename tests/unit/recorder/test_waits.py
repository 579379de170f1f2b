"""How long batches were waited for: told only where it is a good part of a training's time."""

from __future__ import annotations

import io
import time
from types import SimpleNamespace
from typing import Any

import pytest

from unstuck.recorder import facts, flight
from unstuck.recorder.probes.data import passes
from unstuck.recorder.probes.pace import data_waits, pickles

SECOND = 10**9


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(facts, "tell", lambda _kind, data: said.append(data))
    monkeypatch.setattr(flight, "steps", 0)
    monkeypatch.setattr(flight, "came", SECOND)
    monkeypatch.setattr(flight, "waited", 0)
    monkeypatch.setattr(data_waits, "_told", [])
    return said


def draw(book: passes.Ledger, count: int, wait: float, work: float, *, step: bool = True) -> None:
    """One pass of so many batches."""
    data_waits.began(book, 0)
    book.begin(flight.steps)
    for number in range(1, count + 1):
        flight.waited = int(wait * SECOND)
        flight.came += int((wait + work) * SECOND)
        flight.steps += step
        data_waits.drew(book, number)


def test_it_is_told_at_first_and_then_ever_more_rarely(told: list[dict[str, Any]]) -> None:
    draw(passes.Ledger(0), 101, wait=1.0, work=1.0)
    assert [data["waited"] for data in told] == [3.0, 6.0, 10.0, 16.0, 25.0, 38.0, 58.0, 88.0]
    assert told[-1]["seconds"] == 176.0
    data_waits.last()
    assert told[-1]["waited"] == 100.0


def test_the_longest_wait_is_told(told: list[dict[str, Any]]) -> None:
    book = passes.Ledger(0)
    draw(book, 5, wait=0.5, work=0.1)
    draw(book, 3, wait=7.0, work=0.1)
    draw(book, 5, wait=0.5, work=0.1)
    data_waits.last()
    assert told[-1]["longest"] == 7.0


def test_a_training_that_hardly_waits_tells_nothing(told: list[dict[str, Any]]) -> None:
    draw(passes.Ledger(0), 1000, wait=0.05, work=1.0)
    data_waits.last()
    assert told == []


def test_one_long_wait_for_the_first_batch_is_the_start(told: list[dict[str, Any]]) -> None:
    book = passes.Ledger(0)
    draw(book, 1, wait=60.0, work=0.0)
    assert (told, book.waited, book.begun) == ([], 0, 60 * SECOND)


def test_a_validation_beside_a_training_does_not_count(told: list[dict[str, Any]]) -> None:
    draw(passes.Ledger(0), 10, wait=0.0, work=1.0)
    draw(passes.Ledger(1), 20, wait=1.0, work=0.0, step=False)
    assert told == []


def test_what_begins_a_pass_again_is_counted_apart(told: list[dict[str, Any]]) -> None:
    book = passes.Ledger(0)
    for _ in range(5):
        draw(book, 1, wait=1.0, work=0.1)
    assert (told[-1]["starts"], told[-1]["starting"], told[-1]["waited"]) == (3, 3.0, 0.0)


def test_a_pickle_is_measured_where_it_is_made() -> None:
    pickles.begin()
    file = io.BytesIO(b"12345678")
    file.seek(8)
    pickles.note(file, 3, 0)
    assert pickles.largest == 5
    pickles.note(object(), 0, 0)
    assert pickles.largest == 5


def test_workers_that_stay_were_handed_what_they_were_handed_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    book = passes.Ledger(0)
    for size in (70, 0, 0):
        monkeypatch.setattr(pickles, "largest", size)
        data_waits.began(book, 0)
    assert data_waits.told(book)["pickled"] == 70


def test_a_data_set_that_draws_from_another_loader_is_waited_for_from_the_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("fresh", "came", "waited"):
        monkeypatch.setattr(flight, name, getattr(flight, name))
    iterator = SimpleNamespace(_num_yielded=1)
    began = flight.batch_asked()
    time.sleep(0.02)
    flight.batch_came(iterator, flight.batch_asked())
    within = flight.waited
    flight.batch_came(iterator, began)
    assert flight.waited >= 20_000_000 > within
