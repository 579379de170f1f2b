"""The ledger of a loader: passes that were empty, left early or too long, and batches that repeat."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from unstuck.recorder import facts, flight
from unstuck.recorder.probes.data import fingerprints, passes


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    said: list[tuple[str, Any]] = []
    monkeypatch.setattr(facts, "tell", lambda kind, data: said.append((kind, data)))
    monkeypatch.setattr(passes, "_ledgers", {})
    monkeypatch.setattr(passes, "_spent", -(10**12))  # on however busy a machine
    monkeypatch.setattr(flight, "steps", 0)
    return said


def ledger(n: int = 10, **options: Any) -> tuple[Any, passes.Ledger]:
    loader = DataLoader(TensorDataset(torch.arange(n)), batch_size=2, **options)
    return loader, passes.ledger_of(loader, ["a.py", 1, "f"])[0]


def kinds(told: list[tuple[str, Any]]) -> list[str]:
    return [kind for kind, _ in told]


def test_an_ordinary_pass_says_nothing(told: list[tuple[str, Any]]) -> None:
    _keep, book = ledger()
    for _ in range(5):
        passes.began(book, None, 0)
        for number in range(1, 6):
            flight.steps += 1
            passes.look(book, number, torch.randn(2, 3))
        passes.ended(book, 5)
    assert not told


def test_empty_passes_are_told_at_first_and_then_ever_more_rarely(told: list[tuple[str, Any]]) -> None:
    _keep, book = ledger()
    for _ in range(1000):
        passes.began(book, None, 0)
        passes.ended(book, 0)
    assert set(kinds(told)) == {"empty-pass"}
    assert 3 < len(told) < 20
    assert told[-1][1]["full_passes"] == 0


def test_passes_left_after_one_batch(told: list[tuple[str, Any]]) -> None:
    _keep, book = ledger()
    for _ in range(20):
        passes.began(book, None, 1000)
        flight.steps += 1
    assert kinds(told)[-1] == "short-passes"
    assert told[-1][1]["short"] >= 8


def test_a_batch_drawn_now_and_then_is_not_short(told: list[tuple[str, Any]]) -> None:
    _keep, book = ledger()
    for _ in range(50):
        passes.began(book, None, 0)
        flight.steps += 50
    assert not told


def test_a_pass_longer_than_the_loader_says(told: list[tuple[str, Any]]) -> None:
    _keep, book = ledger()
    passes.began(book, None, 0)
    for number in range(1, 101):
        passes.look(book, number, torch.randn(2, 3))
    over = [data["batches"] for kind, data in told if kind == "over-length"]
    assert over[0] == 6
    assert len(over) < 8


def test_the_same_batch_again(told: list[tuple[str, Any]]) -> None:
    _keep, book = ledger()
    batch = torch.randn(2, 3)
    for _ in range(9):
        passes.began(book, None, 0)
        passes.look(book, 1, batch.clone())
        flight.steps += 1
    assert "same-batch" in kinds(told)


@pytest.mark.usefixtures("told")
def test_repeats_are_told_apart_by_worker() -> None:
    _keep, book = ledger(num_workers=2)
    passes.began(book, None, 0)
    batches = [torch.randn(16, 3) for _ in range(4)]
    for number in range(1, 9):
        passes.look(book, number, batches[(number - 1) // 2])
    assert (book.other, book.own) == (4 * fingerprints.ROWS, 0)
    passes.ended(book, 8)
    passes.began(book, None, 0)
    for number in range(1, 9):
        passes.look(book, number, batches[(number - 1) % 4])
    assert (book.other, book.own) == (0, 4 * fingerprints.ROWS)


@pytest.mark.usefixtures("told")
def test_a_loader_made_anew_at_the_same_line_goes_on_in_the_same_ledger() -> None:
    first, book = ledger()
    assert passes.ledger_of(first, ["a.py", 1, "f"]) == (book, False)
    del first
    _second, again = ledger()
    assert again is book
    assert again.loaders == 2


def test_an_iterator_asked_after_its_end(told: list[tuple[str, Any]]) -> None:
    _keep, book = ledger()
    passes.began(book, None, 0)
    passes.ended(book, 5)
    passes.ended(book, 5)
    assert not told, "a loop may notice the end, and then make it anew"
    passes.ended(book, 5)
    assert kinds(told) == ["asked-after-end"]
    assert book.full_passes == 1


@pytest.mark.usefixtures("told")
def test_no_two_ledgers_have_the_same_number() -> None:
    numbers = []
    for line in range(4):  # each gone before the next is made, most likely at the same place
        loader = DataLoader(TensorDataset(torch.arange(4)))
        numbers.append(passes.ledger_of(loader, ["a.py", line, "f"])[0].number)
        del loader
    assert len(set(numbers)) == 4
