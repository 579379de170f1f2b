"""How a dataset is read in a scan: what its loader asks for, by whom, and what is said of it."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    DataLoader,
    RandomSampler,
    Sampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from unstuck.scanning import plan as scan_plan
from unstuck.scanning.pass_outcome import SecondFetch
from unstuck.scanning.sample_worker import MOST_NAMED, Seen

ROWS = TensorDataset(torch.arange(20.0))


class Draws(Sampler):  # type: ignore[misc]
    def __init__(self, *keys: Any, forever: bool = False) -> None:
        self.keys, self.forever, self.passes = keys, forever, 0

    def __iter__(self) -> Any:
        self.passes += 1
        random.random()
        torch.rand(1)
        np.random.rand()
        yield from self.keys
        while self.forever:
            yield from self.keys


class Several:
    def __len__(self) -> int:
        return 20

    def __getitems__(self, indices: list[int]) -> list[int]:
        return indices


def keys(limit: int | None = None, **how: Any) -> list[Any]:
    return list(scan_plan.of_loader(DataLoader(**{"dataset": ROWS, **how}), limit, 4).keys or ())


def plan(dataset: Any = ROWS, **how: Any) -> scan_plan.Plan:
    return scan_plan.of_loader(DataLoader(dataset, **how), None, 4)


@pytest.mark.parametrize("how", [{}, {"shuffle": True}, {"sampler": RandomSampler(ROWS, num_samples=3)}])
def test_plain_samplers_ask_for_everything(how: dict[str, Any]) -> None:
    assert keys(**how) == list(range(20))
    assert keys(5, **how) == [0, 1, 2, 3, 4]


def test_only_what_the_sampler_draws_is_asked_for() -> None:
    assert keys(sampler=SubsetRandomSampler(range(3, 9))) == [3, 4, 5, 6, 7, 8]
    assert keys(sampler=WeightedRandomSampler([1.0, 0.0, 2.0], 9)) == [0, 2]
    assert keys(sampler=Draws(4, 1, 4, 4)) == [1, 4]
    assert keys(sampler=Draws(np.int64(4), 1)) == [1, 4]


def test_other_keys_are_kept_as_they_are_drawn() -> None:
    assert keys(sampler=Draws("b", "a", "b")) == ["b", "a"]
    assert keys(batch_sampler=Draws([(3, 16), (1, 16)], [(3, 8)])) == [(3, 16), (1, 16), (3, 8)]
    drawn = plan(sampler=Draws("b", "a"))
    assert (drawn.numbered, drawn.number(1)) == (False, 1)


def test_a_sampler_without_an_end_is_left() -> None:
    found = scan_plan.Keys(DataLoader(ROWS, sampler=Draws(1, 2, forever=True)))
    assert (list(found.all), found.cut) == ([1, 2], True)


def test_keys_that_are_batches() -> None:
    found = plan(batch_size=None, sampler=Draws([0, 1], [2, 3]))
    assert found.batches
    assert found.rows(1) == [2, 3]


def test_drawing_moves_neither_the_sampler_nor_random_numbers() -> None:
    def numbers() -> list[float]:
        return [random.random(), float(torch.rand(1)), float(np.random.rand())]

    states = torch.get_rng_state(), random.getstate(), np.random.get_state()
    expected = numbers()
    torch.set_rng_state(states[0])
    random.setstate(states[1])
    np.random.set_state(states[2])
    sampler = Draws(1, 2)
    assert keys(sampler=sampler) == [1, 2]
    assert sampler.passes == 0
    assert numbers() == expected


def test_several_at_once_where_the_dataset_gives_them_so() -> None:
    assert plan(Several(), batch_size=8).batched == 8
    assert plan(Subset(Several(), [1, 2]), batch_size=8).batched == 8
    assert plan(Subset(ROWS, [1, 2]), batch_size=8).batched == 0
    assert plan(Several(), batch_size=None).batched == 0


def test_an_open_file_is_read_by_one_process(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"12345678")
    held: Any = TensorDataset(torch.zeros(20))
    assert plan(held).workers == 4
    with open(tmp_path / "data", "rb", buffering=0) as file:
        held.store = {"parts": [file]}
        assert plan(held).workers == 1
        assert "an open file" in plan(held).why
        held.store = {}
        assert plan(held).workers == 4
        file.read(3)  # whoever holds it reads it piece by piece
        assert plan(held).workers == 1
    assert plan(held).workers == 4


@pytest.mark.parametrize(
    ("text", "known"),
    [("print(1)", False), ("if __name__ == '__main__':\n    pass", True), ("name = __name__", False)],
)
def test_a_script_without_a_guard_is_forked(
    text: str, known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(text)
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__=str(tmp_path / "train.py")))
    assert plan(num_workers=1, multiprocessing_context="spawn").method == ("spawn" if known else "fork")
    assert plan().method == "fork"


# --- what was seen -----------------------------------------------------------------------------------------------


def test_errors_are_counted_beyond_those_that_are_named() -> None:
    seen, other = Seen(), Seen()
    for place in range(300):
        seen.failing(place + 1, "KeyError", "", ("a.py", 3, "f"))
    other.failing(0, "KeyError", "", ("a.py", 3, "f"))
    other.failing(9, "OSError", "", None)
    seen.merge(other)
    assert sorted(errors.count for errors in seen.errors.values()) == [1, 301]
    named = seen.errors["KeyError", ("a.py", 3, "f")].first
    assert (len(named), named[0].sample) == (MOST_NAMED, 0)


def again(prints: list[int], slow: list[tuple[float, int]] = ()) -> SecondFetch:  # type: ignore[assignment]
    seen = Seen()
    seen.prints.extend(prints)
    seen.positions.extend(range(len(prints)))
    seen.slow = list(slow)
    seen.times[10] = 1000
    return SecondFetch(SimpleNamespace(keys=range(len(prints))), seen)  # type: ignore[arg-type]


def test_duplicates_are_named_once_they_were_the_same_twice() -> None:
    found = again([5, 6, 5, 7, 5])
    assert sorted(found.wanted()) == [0, 2]
    assert found.duplicates() == ([], 0)
    found.came([(0, 0.1, 5), (2, 0.1, 5)])
    assert found.duplicates() == ([[0, 2, 4]], 2)


def test_samples_that_change_each_time_are_no_duplicates() -> None:
    found = again([5, 6, 5, 6, 6])
    assert sorted(found.wanted()) == [0, 1, 2, 3]
    found.came([(0, 0.1, 5), (2, 0.1, 99), (1, 0.1, 6), (3, 0.1, 6)])
    assert found.duplicates() == ([[1, 3]], 1)


def test_a_sample_is_slow_only_if_it_is_so_again() -> None:
    found = again([1, 2, 3], [(3.0, 0), (2.0, 2), (0.1, 1)])
    assert found.wanted() == [0, 2]
    found.came([(0, 0.001, 1), (2, 1.5, 3)])
    assert found.slow() == [(1.5, 2)]
