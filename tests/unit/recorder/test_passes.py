"""Passes over a loader: empty, left early, too long or over; and batches that repeat."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from unstuck.recorder import dispatch, flight, journal, loading
from unstuck.recorder.hooks.processes import pickles
from unstuck.recorder.probes.data import fingerprints
from unstuck.recorder.probes.data.fingerprints import Fingerprints
from unstuck.recorder.probes.data.passes import Passes
from unstuck.recorder.records import Record
from unstuck.recorder.records.loaders import (
    AskedAfterEnd,
    EmptyPass,
    LoaderSettings,
    OverLength,
    Repeats,
    SameBatch,
    ShortPasses,
    WorkersStarted,
)

SITE = ("a.py", 1, "f")


@pytest.fixture(autouse=True)
def steps() -> Iterator[None]:
    before = list(flight.state)
    yield
    flight.state[:] = before


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is told at once; what is only written is in `written`."""
    said: list[Any] = []
    monkeypatch.setattr(journal, "tell", said.append)
    return said


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    said: list[Any] = []
    monkeypatch.setattr(journal, "write", said.append)
    return said


class Book:
    """One loader, with what its seam does at each pass and batch."""

    def __init__(self, n: int = 10, dataset: Any = None, **options: Any) -> None:
        self.loader = DataLoader(dataset or TensorDataset(torch.arange(n)), batch_size=2, **options)
        self.known, _ = loading.Loadings().of(self.loader, SITE)
        self.passes, self.prints = Passes(), Fingerprints()
        dispatch._dispatch.probes["passes"] = self.passes
        self.iterator = SimpleNamespace(_num_yielded=0)

    def begin(self, took: int = 0, pids: tuple[int, ...] = ()) -> None:
        known = self.known
        workers = [SimpleNamespace(pid=pid) for pid in pids]
        self.iterator = SimpleNamespace(_num_yielded=0, _workers=workers)
        known.opened = took
        self.passes.pass_began(known, self.iterator)
        known.steps, known.ended = flight.steps(), False
        known.passes += 1

    def give(self, batch: Any, look: bool = True) -> None:
        known, self.iterator._num_yielded = self.known, self.iterator._num_yielded + 1
        if self.iterator._num_yielded > 1:
            known.drawn += 1
        elif known.since:
            known.starts += 1
        else:
            known.since = 1
        if look:
            for probe in (self.prints, self.passes):
                probe.batch_looked_at(known, self.iterator, batch)

    def end(self) -> None:
        known = self.known
        self.passes.pass_ended(known, self.iterator._num_yielded)
        if not known.ended:
            known.trained += flight.steps() - known.steps
            known.ended = True


@pytest.fixture(autouse=True)
def probes() -> Iterator[None]:
    before = dict(dispatch._dispatch.probes)
    yield
    dispatch._dispatch.probes.clear()
    dispatch._dispatch.probes.update(before)


def step(made: int = 1) -> None:
    flight.state[flight.STEPS] += made


def kinds(told: list[Record]) -> list[type[Record]]:
    return [type(record) for record in told]


def test_an_ordinary_pass_says_nothing(told: list[Any]) -> None:
    book = Book()
    for _ in range(5):
        book.begin()
        for _ in range(5):
            step()
            book.give(torch.randn(2, 3))
        book.end()
    assert not told


def test_empty_passes_are_told_at_first_and_then_ever_more_rarely(told: list[Any]) -> None:
    book = Book()
    for _ in range(1000):
        book.begin()
        book.end()
    assert set(kinds(told)) == {EmptyPass}
    assert 3 < len(told) < 20
    assert told[-1].full_passes == 0


def test_passes_left_after_one_batch(told: list[Any]) -> None:
    book = Book()
    for _ in range(20):
        book.begin(took=1000)
        step()
    assert kinds(told)[-1] is ShortPasses
    assert told[-1].short >= 8
    assert told[-1].opening > 0


def test_a_batch_drawn_now_and_then_is_not_short(told: list[Any]) -> None:
    book = Book()
    for _ in range(50):
        book.begin()
        step(50)
    assert not told


def test_a_pass_longer_than_the_loader_says(told: list[Any]) -> None:
    book = Book()
    book.begin()
    for _ in range(100):
        book.give(torch.randn(2, 3))
    over = [record.batches for record in told if type(record) is OverLength]
    assert over[0] == 6
    assert len(over) < 8


def test_the_same_batch_again(told: list[Any]) -> None:
    book = Book()
    batch = torch.randn(2, 3)
    for _ in range(9):
        book.begin()
        book.give(batch.clone())
        step()
    same = [record for record in told if type(record) is SameBatch]
    assert [(record.same, record.apart) for record in same] == [(7, 1)]
    assert same[0].short == 7, "each pass but the present one was left after its batch"


def test_batches_that_are_not_compared_one_after_another_are_told_as_that(told: list[Any]) -> None:
    """A stream of 16 batches that comes round, of which every 32nd is looked at."""
    book = Book(dataset=Stream())
    book.begin()
    batches = [torch.randn(2, 3) for _ in range(16)]
    for number in range(1, 400):
        book.give(batches[number % 16], look=number < 8 or not number % 32)
    same = [record for record in told if type(record) is SameBatch]
    assert [(record.same, record.apart) for record in same] == [(7, 32)]


def test_repeats_are_told_apart_by_worker(told: list[Any]) -> None:
    book = Book(num_workers=2)
    book.begin()
    batches = [torch.randn(16, 3) for _ in range(4)]
    for number in range(8):
        book.give(batches[number // 2])
    prints = book.prints.prints[book.known.number]
    assert (prints.other, prints.own) == (4 * fingerprints.MOST_ROWS, 0)
    assert kinds(told).count(Repeats) == 2
    book.end()
    book.begin()
    for number in range(8):
        book.give(batches[number % 4])
    assert (prints.other, prints.own) == (0, 4 * fingerprints.MOST_ROWS)


def test_a_loader_made_anew_at_the_same_line_is_the_same() -> None:
    every = loading.Loadings()
    first = DataLoader(TensorDataset(torch.arange(4)))
    known, new = every.of(first, SITE)
    assert new
    assert every.of(first, SITE) == (known, False)
    del first
    again, new = every.of(DataLoader(TensorDataset(torch.arange(4))), SITE)
    assert new
    assert again is known
    assert again.loaders == 2


def test_no_two_loaders_have_the_same_number() -> None:
    every = loading.Loadings()
    numbers = []
    for line in range(4):  # each gone before the next is made, most likely at the same place
        loader = DataLoader(TensorDataset(torch.arange(4)))
        numbers.append(every.of(loader, ("a.py", line, "f"))[0].number)
        del loader
    assert len(set(numbers)) == 4


def test_an_iterator_asked_after_its_end(told: list[Any]) -> None:
    book = Book()
    book.begin()
    book.give(torch.randn(2, 3))
    book.end()
    book.end()
    assert not told, "a loop may notice the end, and then make it anew"
    book.end()
    assert kinds(told) == [AskedAfterEnd]
    assert book.passes.counts[book.known.number].full_passes == 1


def test_the_size_of_a_batch_is_noted() -> None:
    book = Book()
    book.begin()
    book.give({"x": torch.zeros(4, 3), "y": [torch.zeros(2, dtype=torch.float64)]})
    assert flight.state[flight.SIZE] == 14


@pytest.mark.usefixtures("told")
def test_what_is_kept_is_bounded() -> None:
    book = Book()
    for number in range(3 * loading.MANY):
        book.known.number = number
        book.begin()
        book.give(torch.randn(2, 3))
    assert len(book.passes.counts) == len(book.prints.prints) == loading.MANY


# --- how loaders are set ---------------------------------------------------------------------------------------


class Stream(IterableDataset[Any]):  # type: ignore[misc]  # mypy does not follow torch
    def __iter__(self) -> Iterator[Any]:
        yield torch.utils.data.get_worker_info()


def test_settings_are_written_for_each_new_loader(written: list[Any]) -> None:
    book = Book(dataset=Stream(), num_workers=2, multiprocessing_context="spawn")
    book.begin()
    book.begin()
    (about,) = written
    assert type(about) is LoaderSettings
    assert (about.batch_size, about.num_workers, about.start_method) == (2, 2, "spawn")
    assert (about.iterable, about.splits, about.asks_worker, about.persistent_workers) == (True, True, True, False)
    assert (about.dataset, about.length, about.samples, about.loader) == ("Stream", None, None, id(book.loader))
    assert about.dataset_site is not None
    assert about.dataset_site[2].endswith("__iter__")
    assert about.site == SITE


def test_new_workers_are_written(written: list[Any]) -> None:
    book = Book()
    pickles.largest, pickles.took = 70, 10**9
    book.begin(pids=(5, 6))
    book.begin(pids=(5, 6))
    book.begin(pids=(7, 8))
    started = [record for record in written if type(record) is WorkersStarted]
    assert [record.pids for record in started] == [[5, 6], [7, 8]]
    assert [(record.pickled, record.pickling) for record in started] == [(70, 1.0), (0, 0.0)]
    assert (book.known.pickled, book.known.pickling) == (70, 10**9), "those that stay are handed nothing anew"
