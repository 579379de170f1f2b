"""Plain attributes of a dataset, what workers know of them, and what the code that gives its samples reads and asks."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Subset, get_worker_info
from torch.utils.data import get_worker_info as which

from tests.unit.recorder.untouchable import OddDict, OddList, OddText, Untouchable, watching
from unstuck.recorder import journal
from unstuck.recorder.loading import Loadings
from unstuck.recorder.probes.data import dataset_state
from unstuck.recorder.probes.data.dataset_state import DatasetState, state
from unstuck.recorder.probes.data.sample_code import asks_its_worker, names_read
from unstuck.recorder.records.loaders import ChangedDataset, WorkerDataset


class Flip:
    def __init__(self) -> None:
        self.chance = 0.5

    def __call__(self, x: Any) -> Any:
        return x * self.chance


class Data:
    def __init__(self) -> None:
        self.epoch = 3
        self.name = "train"
        self.sigma = torch.tensor(0.25, dtype=torch.float64)
        self.range = np.array([1, 2])
        self.transform = Flip()
        self.big = torch.zeros(1000)
        self.lock = threading.Lock()
        self.hits = 0

    def __getitem__(self, i: int) -> Any:
        return self.transform(self._draw(i))

    def _draw(self, i: int) -> Any:
        return i * self.epoch


def test_plain_values_are_kept_and_others_passed_over() -> None:
    expected = {"epoch": 3, "name": "train", "sigma": 0.25, "range": [1, 2], "transform.chance": 0.5, "hits": 0}
    assert state(Data()) == expected


def test_names_are_followed_into_methods_and_transforms() -> None:
    read = names_read(Data())
    assert {"epoch", "chance", "transform"} <= read
    assert "hits" not in read


def test_anything_at_all_may_be_a_dataset() -> None:
    for thing in (None, 3, [1, 2], torch.zeros(3), object(), Untouchable):
        state(thing)
        names_read(thing)
        asks_its_worker(thing, thing)


def test_nothing_of_the_users_is_run() -> None:
    data = Untouchable()
    object.__getattribute__(data, "__class__")
    holder = SimpleNamespace(
        thing=data, kind=Untouchable, text=OddText("a"), parts=OddList([1]), named=OddDict(a=1), nested=[OddText("b")]
    )
    with watching() as ran:
        for thing in (data, Untouchable, holder):
            state(thing)
            names_read(thing)
            asks_its_worker(thing, thing)
    assert not ran


def test_what_is_kept_has_an_end() -> None:
    text, numbers = "x" * 10**6, list(range(10**6))

    class Large:
        def __init__(self, depth: int) -> None:
            self.text, self.texts, self.number, self.numbers = text, [text] * 5, 10**5000, numbers
            self.__dict__.update({f"{depth} {n}": Large(depth + 1) if depth < 3 else n for n in range(20)})

    large, began = Large(0), time.thread_time()
    kept = state(large)
    assert time.thread_time() - began < 0.5
    assert len(kept) <= dataset_state.MOST_VALUES
    assert len(json.dumps(kept)) < 10**6
    assert kept["text"] == "x" * dataset_state.TEXT
    assert "number" not in kept
    assert "numbers" not in kept


# --- do the workers know? ------------------------------------------------------------------------------------


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    said: list[Any] = []
    monkeypatch.setattr(journal, "tell", said.append)
    monkeypatch.setattr(journal, "write", said.append)
    return said


def test_a_change_that_workers_which_live_on_do_not_see(told: list[Any]) -> None:
    data, probe = Data(), DatasetState()
    loader: Any = DataLoader(data, num_workers=1, persistent_workers=True)
    of = Loadings().of(loader, None)[0]
    assert probe.workers_began(loader, of.number) == []
    for epoch in (3, 3, 4, 5, 6, 7, 8):
        data.epoch, data.hits = epoch, data.hits + 1
        probe.pass_began(of, None)
        of.passes += 1
    assert all(type(each) is ChangedDataset for each in told)
    assert [each.passes for each in told] == [1, 2, 3, 4], "then ever more rarely"
    last = {each.name: (each.then, each.now, each.read) for each in told[-1].changed}
    assert last == {"epoch": (3, 5, True), "hits": (0, 4, False)}
    assert (told[-1].number, told[-1].dataset) == (of.number, "Data")


def test_workers_that_are_started_anew_have_it_as_it_is(told: list[Any]) -> None:
    data, probe = Data(), DatasetState()
    loader: Any = DataLoader(data, num_workers=1)
    of = Loadings().of(loader, None)[0]
    probe.workers_began(loader, of.number)
    data.epoch, data.hits, data.transform.chance = 4, 1, 0.25
    assert probe.workers_began(loader, of.number) == ["epoch", "transform.chance"]
    data.epoch = 5
    probe.pass_began(of, None)
    assert not told
    assert probe.workers_began(DataLoader(Data(), num_workers=1), of.number) == [dataset_state.REPLACED]


def test_a_worker_tells_what_it_has_from_its_second_pass_on(told: list[Any]) -> None:
    probe, fetchers = DatasetState(), [SimpleNamespace(dataset=Data()) for _ in range(9)]
    for fetcher in fetchers:
        for _ in range(3):
            probe.fetch_began(fetcher)
    assert all(type(each) is WorkerDataset for each in told)
    assert [each.passes for each in told] == [2, 3, 4, 8]
    assert told[0].state["epoch"] == 3


# --- does it ask its worker? ---------------------------------------------------------------------------------


def own_part(given: Any) -> Any:
    info = get_worker_info()
    return given if info is None else given[info.id :: info.num_workers]


def own_part_by_another_name(given: Any) -> Any:
    return which() or given


def through(part: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def inner(given: Any) -> Any:
        return part(given)

    return inner


def seeded(worker: int) -> None:
    torch.manual_seed(worker)


class Lines:
    def __init__(self, inner: Any = None) -> None:
        self.inner = inner

    def __iter__(self) -> Iterator[int]:
        return iter(range(8))


class Asks(Lines):
    def __iter__(self) -> Iterator[int]:
        info = torch.utils.data.get_worker_info()
        return iter(range(info.id, 8))


class AsksInAMethod(Lines):
    def __iter__(self) -> Iterator[int]:
        return self._part()

    def _part(self) -> Iterator[int]:
        return iter(range(get_worker_info().id, 8))


class AsksThroughAFunction(Lines):
    def __iter__(self) -> Iterator[int]:
        return iter(own_part(range(8)))


class AsksByAnotherName(Lines):
    def __iter__(self) -> Iterator[int]:
        return iter(own_part_by_another_name(range(8)))


class Preparing:
    def __call__(self, worker: int) -> None:
        own_part(range(worker))


@pytest.mark.parametrize(
    ("dataset", "init", "asks"),
    [
        (Lines(), None, False),
        (Lines(), seeded, False),
        (Asks(), None, True),
        (AsksInAMethod(), None, True),
        (AsksThroughAFunction(), None, True),
        (AsksByAnotherName(), None, True),
        (Lines(Asks()), None, True),
        (Lines(Lines(Lines(Asks()))), None, True),
        (Subset(Subset(AsksThroughAFunction(), [0]), [0]), None, True),
        (Lines(own_part), None, False),  # held, not called
        (Lines(), own_part, True),
        (Lines(), partial(own_part), True),
        (Lines(), Preparing(), True),
        (Lines(), Preparing().__call__, True),
        (Lines(), through(own_part), True),
        (Lines(torch.nn.Sequential(torch.nn.Linear(2, 2))), None, False),
    ],
)
def test_one_answer_for_the_recorder_and_for_tune(dataset: Any, init: Any, asks: bool) -> None:
    assert asks_its_worker(dataset, init) is asks
