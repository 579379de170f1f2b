"""How long batches were waited for: told only where it is a good part of a training's time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from unstuck.recorder import flight, guard, journal
from unstuck.recorder import layout as at
from unstuck.recorder.hooks import dataloader, processes
from unstuck.recorder.loading import Loading
from unstuck.recorder.probes.pace.data_waits import DataWaits
from unstuck.recorder.records.loaders import DataWait

SECOND = 10**9


@pytest.fixture(autouse=True)
def steps() -> Iterator[None]:
    before, starved = list(flight.state), flight.words[at.W_STARVED]
    yield
    flight.state[:] = before
    flight.words[at.W_STARVED] = starved


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[DataWait]:
    said: list[Any] = []
    monkeypatch.setattr(journal, "tell", said.append)
    return said


class Clock:
    """What the seam of a loader counts, by a clock of our own."""

    def __init__(self) -> None:
        self.now = SECOND
        self.waits = DataWaits()

    def draw(self, known: Loading, count: int, wait: float, work: float, *, step: bool = True) -> None:
        """One pass of so many batches."""
        known.steps = flight.steps()
        waited = int(wait * SECOND)
        for number in range(1, count + 1):
            self.now += int((wait + work) * SECOND)
            flight.state[flight.STEPS] += step
            if number > 1:
                known.drawn += 1
                known.waited += waited
                known.longest = max(known.longest, waited)
            elif known.since:
                known.starts += 1
                known.starting += waited + known.opened
            else:
                known.since, known.begun = self.now, waited
            known.until = self.now
            if known.waited + known.starting > known.tell_at:
                self.waits.waited_much(known)


def test_it_is_told_at_first_and_then_ever_more_rarely(told: list[DataWait]) -> None:
    clock, starved = Clock(), flight.words[at.W_STARVED]
    clock.draw(Loading(0), 101, wait=1.0, work=1.0)
    assert [record.waited for record in told] == [3.0, 6.0, 10.0, 16.0, 25.0, 38.0, 58.0, 88.0]
    assert told[-1].seconds == 176.0
    assert flight.words[at.W_STARVED] - starved == 8
    clock.waits.last()
    assert told[-1].waited == 100.0


def test_the_longest_wait_is_told(told: list[DataWait]) -> None:
    clock, known = Clock(), Loading(0)
    clock.draw(known, 5, wait=0.5, work=0.1)
    clock.draw(known, 3, wait=7.0, work=0.1)
    clock.draw(known, 5, wait=0.5, work=0.1)
    clock.waits.last()
    assert told[-1].longest == 7.0


def test_a_training_that_hardly_waits_tells_nothing(told: list[DataWait]) -> None:
    clock = Clock()
    clock.draw(Loading(0), 1000, wait=0.05, work=1.0)
    clock.waits.last()
    assert told == []


def test_one_long_wait_for_the_first_batch_is_the_start(told: list[DataWait]) -> None:
    known = Loading(0)
    Clock().draw(known, 1, wait=60.0, work=0.0)
    assert (told, known.waited, known.begun) == ([], 0, 60 * SECOND)


def test_a_validation_beside_a_training_does_not_count(told: list[DataWait]) -> None:
    clock = Clock()
    clock.draw(Loading(0), 10, wait=0.0, work=1.0)
    clock.draw(Loading(1), 20, wait=1.0, work=0.0, step=False)
    assert told == []


def test_what_begins_a_pass_again_is_counted_apart(told: list[DataWait]) -> None:
    clock, known = Clock(), Loading(0)
    for _ in range(5):
        clock.draw(known, 1, wait=1.0, work=0.1)
    assert (told[-1].starts, told[-1].starting, told[-1].waited) == (3, 3.0, 0.0)


def test_a_forked_child_does_not_tell_what_its_parent_waited_for(told: list[DataWait]) -> None:
    clock = Clock()
    clock.draw(Loading(0), 10, wait=1.0, work=0.0)
    told.clear()
    clock.waits.forget()
    clock.waits.last()
    assert told == []


def test_a_pickle_is_measured_where_it_is_made() -> None:
    module = SimpleNamespace(dump=lambda obj, file, _: file.write(obj))
    processes.install_pickles(module)
    guard._removers.pop("pickles")
    processes.pickles.begin()
    file = io.BytesIO(b"12345678")
    file.seek(3)
    module.dump(b"12345", file)
    assert processes.pickles.largest == 5
    module.dump(b"1234567", SimpleNamespace(write=len))
    assert processes.pickles.largest == 5
    processes.pickles.begin()


def test_the_pickles_of_new_workers_are_known_where_their_pass_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's constructor starts the workers, and then calls its own `_reset`."""

    class Iterator:
        def __init__(self, loader: object) -> None:
            processes.pickles.largest = 70
            self._reset(loader, first_iter=True)

        def _reset(self, loader: object, first_iter: bool = False) -> None: ...

    known: list[int] = []
    monkeypatch.setattr(dataloader, "opened", lambda *_: known.append(processes.pickles.largest))
    for name in ("__init__", "_reset"):
        dataloader._wrap_opening(Iterator, name, name)
        guard._removers.pop(name)
    iterator = Iterator(None)
    assert known == [70]
    iterator._reset(None)
    assert known == [70, 0], "workers that stay are handed nothing"


def test_a_data_set_that_draws_from_another_loader_is_waited_for_from_the_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter((16 * SECOND, 30 * SECOND))
    monkeypatch.setattr(dataloader, "monotonic_ns", lambda: next(clock))
    monkeypatch.setattr(dataloader, "look", lambda *_: None)
    outer, inner = Loading(0), Loading(1)
    within, around = (
        SimpleNamespace(_num_yielded=2, **{dataloader.OPENED: known, dataloader.DRAWN: known})
        for known in (inner, outer)
    )
    dataloader.came(within, 15 * SECOND, None)
    dataloader.came(around, 10 * SECOND, None)
    assert (outer.waited, inner.waited) == (20 * SECOND, SECOND)
