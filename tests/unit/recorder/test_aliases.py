"""Batches in the dataset's memory: found by address, watched by content, and the line that writes."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset, TensorDataset

from tests.unit.recorder.untouchable import OddDict, OddList, OddNumber, OddText, OddTuple, Untouchable, watching
from unstuck.recorder import flight, governor, hiding, journal, loading
from unstuck.recorder.probes.data import dataset_memory, watched_memory
from unstuck.recorder.probes.data.aliases import Aliases
from unstuck.recorder.probes.data.watched_memory import Sharing
from unstuck.recorder.records.loaders import AliasedBatch

Told = list[AliasedBatch]
SITE = ("a.py", 1, "f")


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    said: Told = []
    monkeypatch.setattr(journal, "tell", said.append)
    monkeypatch.setattr(hiding, "has_compiled", lambda: False)
    yield said
    assert not flight.state[flight.WATCHED], "somebody is still waiting for batches"


def names(dataset: Any, *places: int) -> set[str]:
    return {name for name, _ in dataset_memory.held(dataset, set(places))[0]}


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


def test_the_walk_has_an_end_whatever_it_is_given() -> None:
    class Many:
        def __init__(self) -> None:
            self.parts = [Subset(self, list(range(1, 9000))) for _ in range(200)]
            self.whole = ConcatDataset([TensorDataset(torch.zeros(2))] * 3000)
            self.__dict__.update({f"a{number}": [number] for number in range(20_000)})

    many, places, began = Many(), set(range(500)), time.thread_time()
    assert len(names(many, *places)) < dataset_memory.MOST_OBJECTS
    assert time.thread_time() - began < 0.1
    dataset_memory.held(many, places)
    assert len(places) <= dataset_memory.MOST_PLACES


def test_names_are_short_and_keys_of_any_kind() -> None:
    class Named:
        def __init__(self) -> None:
            self.named = {"k" * 100_000: torch.zeros(1), 10**5000: torch.zeros(1)}
            self.by_number = {number: torch.zeros(1) for number in range(1000)}

    assert names(Named(), 499) == {f".named['{'k' * 60}']", ".named[…]", ".by_number[499]"}


def test_nothing_of_the_users_is_run() -> None:
    class Holder:
        def __init__(self) -> None:
            self.things = [Untouchable(), OddList([torch.zeros(1)]), OddDict(a=torch.zeros(1)), OddTuple([1])]
            self.many = dict.fromkeys(map(OddNumber, range(1000)))
            self.kind, self.text, self.keyed = Untouchable, OddText("a"), {Untouchable(): 1}

    holder = Holder()
    with watching() as ran:
        assert names(holder, 3) == {".things[1][0]", ".things[2]['a']"}
        assert names(Untouchable(), 3) == set()
    assert not ran


def test_where_an_array_lies_also_if_it_runs_backwards() -> None:
    whole: Any = np.zeros((6, 4), np.float32)
    all_of_it, turned = dataset_memory.extent(whole), dataset_memory.extent(whole[::-1, 1:3])
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
) -> Sharing:
    """Draw from a loader as the seam does."""
    loader: Any = DataLoader(dataset, **options)
    probe, of = Aliases(), loading.Loadings().of(loader, SITE)[0]
    for _ in range(passes_made):
        probe.pass_left(of)
        iterator = iter(loader)
        of.passes += 1
        of.indices = {}
        for number in range(len(loader)):
            probe.batch_asked(iterator)
            fetch()
            of.indices[number] = number
            batch = next(iterator)
            probe.batch_fetched(iterator)
            probe.batch_looked_at(of, iterator, batch)
            assert bool(flight.state[flight.WATCHED]) is bool(probe.watched)
            step(batch)
        probe.batch_asked(iterator)
        probe.pass_ended(of, len(loader))
    return probe.loaders[of.number]


def double(x: Any) -> None:
    x *= 2.0


def test_harm_is_what_a_later_pass_is_given_as_it_was_left_and_changes_again(told: Told) -> None:
    run(Store(), double, passes_made=2, batch_size=None)
    before, after = told
    assert (before.harm, after.harm) == (False, True)
    assert after.again >= after.rewritten > 0
    assert after.line == before.line


def test_the_proof_is_worth_a_few_looks_that_nobody_allows(told: Told) -> None:
    """The governor's time is over after the first pass; here it is asked as the dispatcher asks it."""
    loader: Any = DataLoader(Store(), batch_size=None)
    probe, of = Aliases(), loading.Loadings().of(loader, SITE)[0]
    for number in range(3):
        probe.pass_left(of)
        assert bool(probe.governed) is (number != 1)
        of.passes += 1
        iterator = iter(loader)
        for batch in iterator:
            probe.batch_asked(iterator)
            if not number or not probe.governed:
                probe.batch_looked_at(of, iterator, batch)
            double(batch)
    assert [said.harm for said in told] == [False, True]
    probe.remove()


def test_proving_has_an_end(told: Told) -> None:
    loader: Any = DataLoader(Store(400), batch_size=None)
    probe, of = Aliases(), loading.Loadings().of(loader, SITE)[0]
    looks = 0
    for number in range(2):
        probe.pass_left(of)
        of.passes += 1
        iterator = iter(loader)
        for place, batch in enumerate(iterator):
            probe.batch_asked(iterator)
            if (not number and place < 10) or not probe.governed:
                looks += number
                probe.batch_looked_at(of, iterator, batch)
            if not number:
                double(batch)
    assert looks == 64
    assert [said.harm for said in told] == [False]
    probe.remove()


def test_of_a_pass_that_nobody_looked_at_nothing_is_known() -> None:
    loader: Any = DataLoader(Store(), batch_size=None)
    probe, of = Aliases(), loading.Loadings().of(loader, SITE)[0]
    for number in range(3):
        probe.pass_left(of)
        of.passes += 1
        iterator = iter(loader)
        for batch in iterator:
            probe.batch_asked(iterator)
            if number != 1:
                probe.batch_looked_at(of, iterator, batch)
            double(batch)
    assert (probe.loaders[of.number].again, probe.loaders[of.number].anew) == (0, 0)
    probe.remove()


def test_to_write_the_same_again_does_no_harm(told: Told) -> None:
    known = run(Store(), lambda x: x.clamp_(max=5.0), passes_made=4, batch_size=None)
    assert known.again
    assert not any(said.harm for said in told)
    assert told[-1].again, "that it came again unchanged is told too"


def test_what_is_read_anew_in_each_pass_is_not_changed_for_later_ones(told: Told) -> None:
    class Chunks(IterableDataset):  # type: ignore[misc]  # torch is Any here
        def __iter__(self) -> Iterator[Any]:
            for _ in range(4):
                self.chunk = torch.arange(40.0).reshape(10, 4)
                yield from self.chunk

    loader: Any = DataLoader(Chunks(), batch_size=None)
    probe, of = Aliases(), loading.Loadings().of(loader, SITE)[0]
    for _ in range(3):
        probe.pass_left(of)
        iterator = iter(loader)
        of.passes += 1
        for _ in range(40):
            probe.batch_asked(iterator)
            batch = next(iterator)
            probe.batch_fetched(iterator)
            probe.batch_looked_at(of, iterator, batch)
            batch.sub_(5).div_(2)
    assert probe.loaders[of.number].changes
    probe.remove()
    assert not told


def test_a_thread_of_the_dataset_may_fill_what_is_not_in_work(told: Told) -> None:
    class Double(Store):
        turn = 0

        def __init__(self) -> None:
            super().__init__()
            self.buffers = [torch.zeros(8), torch.zeros(8)]

        def __getitem__(self, i: int) -> Any:
            return self.buffers[i % 2]

    data, ask, done = Double(), threading.Event(), threading.Event()

    def fill() -> None:
        while ask.wait(10.0) and data.turn >= 0:
            ask.clear()
            data.buffers[(data.turn + 1) % 2].add_(1.0)
            done.set()

    def step(_: Any) -> None:
        done.clear()
        ask.set()
        assert done.wait(10.0)
        data.turn += 1

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        known = run(data, step, passes_made=3, batch_size=None)
    finally:
        data.turn = -1
        ask.set()
        thread.join()
    assert known.shared
    assert not known.changes
    assert not told


def test_threads_that_only_report_are_no_company(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = {threading.get_ident(): threading.current_thread()}  # whatever other tests have left in this process
    monkeypatch.setattr(threading, "_active", mine)
    assert not watched_memory.has_company()
    torchs = threading.Thread(target=torch.utils.data._utils.pin_memory._pin_memory_loop)
    assert watched_memory.origin(torchs) == "torch"
    assert watched_memory.origin(threading.Thread(target=Store().push)) == __name__.partition(".")[0]
    assert watched_memory.origin(threading.Timer(1.0, print)) == "threading"


def test_nothing_of_a_users_array_is_asked_for(told: Told) -> None:
    class Odd(np.ndarray):
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

        @property
        def dtype(self) -> Any:
            raise AssertionError("dtype")

    class Whole:
        def __init__(self) -> None:
            self.table: Any = np.ones(12, np.float32).view(Odd)

        def __len__(self) -> int:
            return 1

        def __getitem__(self, i: int) -> Any:
            return self.table

    def write(x: Any) -> None:
        np.ndarray.__setitem__(x, 0, np.ndarray.__getitem__(x, 0) + 1.0)

    run(Whole(), write, passes_made=5, batch_size=None, collate_fn=lambda x: x)
    assert told[-1].attribute == "table"
    assert told[-1].value_before is not None
    assert (told[-1].version_before, told[-1].version_after) == (None, None)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="a frame keeps no copy of its variables there")
def test_variables_of_a_function_that_may_hold_them_are_not_kept() -> None:
    class Thing:
        pass

    seen = []

    def step(x: Any) -> None:
        x *= 2.0
        seen.append(weakref.ref(Thing()))

    def holding() -> Sharing:
        thing = Thing()
        seen.append(weakref.ref(thing))
        vars(thing)
        known = run(Store(), step, batch_size=None)
        del thing
        assert seen[0]() is None
        return known

    def drawing() -> Iterator[None]:
        while True:
            thing = Thing()
            seen.append(weakref.ref(thing))
            yield
            del thing

    holding()
    seen.clear()
    generator = drawing()
    next(generator)
    run(Store(), lambda x: (x.mul_(2.0), next(generator)), batch_size=None)
    next(generator)
    gc.collect()
    assert [place for place, each in enumerate(seen) if each() is not None] == [len(seen) - 1]


def test_a_view_that_is_written_to_is_told_once_with_its_line(told: Told) -> None:
    run(Store(), double, batch_size=None)
    (said,) = told
    assert (said.harm, said.again) == (False, 0)
    assert said.attribute == "rows"
    assert said.value_before is not None
    assert said.value_after == 2 * said.value_before
    assert said.version_before is not None
    assert said.version_after is not None
    assert said.version_after > said.version_before
    assert said.line is not None
    assert said.line[1:] == (double.__code__.co_firstlineno + 1, "double")
    assert (said.number, said.site, said.passes) == (0, SITE, 1)
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
def test_nothing_is_said_of(step: Callable[[Any], object], options: Any, told: Told) -> None:
    run(Store(), step, passes_made=2, **options)
    assert not told


def test_what_the_dataset_does_itself_is_its_own_affair(told: Told) -> None:
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


def test_a_buffer_that_is_filled_anew_is_no_data(told: Told) -> None:
    class Buffered(Store):
        def __getitem__(self, i: int) -> Any:
            return self.rows

    data = Buffered()
    known = run(data, double, batch_size=None, fetch=lambda: data.rows.fill_(1.0))
    assert known.own
    assert not told


def test_what_is_trained_itself_is_no_data(told: Told) -> None:
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


def test_arrays_handed_out_whole_again_and_again(told: Told) -> None:
    class Whole:
        def __init__(self) -> None:
            self.table: Any = np.ones((5, 3), np.float32)

        def __len__(self) -> int:
            return 1

        def __getitem__(self, i: int) -> Any:
            return self.table

    run(Whole(), double, passes_made=5, batch_size=None)
    said = told[-1]
    assert said.attribute == "table"
    assert said.again
    assert said.harm
    assert said.version_before is None


def test_data_that_went_away_are_not_read(told: Told) -> None:
    data = Store()

    def replaced(_: Any) -> None:
        data.rows = torch.zeros(40, 4)

    run(data, replaced, batch_size=None)
    assert not told


def test_shared_memory_is_the_datasets_at_another_address_too(told: Told) -> None:
    data = Store()
    data.rows.share_memory_()
    run(data, double, batch_size=None, num_workers=1)
    assert told[0].attribute == "rows"
    assert told[0].address >= data.rows.data_ptr()
    assert (data.rows[:, 1] % 2 == 0).all()


def test_a_mode_of_the_users_sees_only_what_the_step_does(told: Told) -> None:
    seen: list[str] = []

    class Seeing(TorchFunctionMode):  # type: ignore[misc]  # torch is Any here
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function.__name__)
            return function(*args, **(kwargs or {}))

    def step(x: Any) -> None:
        with Seeing():
            x *= 2.0

    run(Store(), step, batch_size=None)
    assert told[0].line is not None
    assert set(seen) == {"mul_"}


def test_what_following_costs_is_counted(told: Told) -> None:
    before = governor.governor.by_probe.get("aliases", 0.0)
    run(Store(), double, batch_size=None)
    assert told[0].line is not None
    assert governor.governor.by_probe["aliases"] > before


def test_no_line_is_followed_under_a_debugger(told: Told) -> None:
    def debugger(*_: object) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        run(Store(), double, batch_size=None)
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(before)
    assert told[0].line is None
