"""`unstuck.bounded`: a pass ends, nothing is fetched beyond it, and the loader's own end counts first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import unstuck


class Stream:
    """Endless; counts what was taken."""

    def __init__(self) -> None:
        self.taken = 0

    def __iter__(self) -> Iterator[int]:
        for number in itertools.count():
            self.taken += 1
            yield number


def test_max_batches_ends_every_pass_and_fetches_no_more(capfd: Any) -> None:
    stream = Stream()
    loader = unstuck.bounded(stream, max_batches=3)
    assert [list(loader), list(loader)] == [[0, 1, 2]] * 2
    assert stream.taken == 6
    assert (loader.stopped, len(loader)) == ("max_batches", 3)
    said = capfd.readouterr().err
    assert said.count("the pass ends after 3 batches") == 1, "once, not of every pass"
    assert "(max_batches=3)" in said


def test_max_seconds_ends_between_batches(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    clock = itertools.count(0.0, 1.0)
    monkeypatch.setattr("unstuck.heal.bounded_loop.time.monotonic", lambda: next(clock))
    loader = unstuck.bounded(Stream(), max_seconds=4)
    assert list(loader) == [0, 1, 2]
    assert loader.stopped == "max_seconds"
    assert "(max_seconds=4)" in capfd.readouterr().err
    with pytest.raises(TypeError, match="no length"):
        len(loader)


def test_the_loader_may_end_first(capfd: Any) -> None:
    loader = unstuck.bounded([1, 2], max_batches=5, max_seconds=60)
    assert list(loader) == [1, 2]
    assert (loader.stopped, len(loader)) == (None, 2)
    assert capfd.readouterr().err == ""


def test_without_a_bound_it_holds_a_loader_to_its_length() -> None:
    class Wraps:
        def __len__(self) -> int:
            return 4

        def __iter__(self) -> Iterator[int]:
            return itertools.cycle(range(4))

    loader = unstuck.bounded(Wraps())
    assert list(loader) == [0, 1, 2, 3]
    assert loader.stopped == "length"


def test_a_data_loader_keeps_its_attributes_and_order() -> None:
    data = TensorDataset(torch.arange(10.0))
    plain = DataLoader(data, batch_size=4)
    loader = unstuck.bounded(plain, max_batches=2)
    assert [batch[0].tolist() for batch in loader] == [batch[0].tolist() for batch in plain][:2]
    assert (loader.batch_size, loader.dataset, len(loader)) == (4, data, 2)


def test_an_iterator_goes_on_where_the_last_pass_ended() -> None:
    loader = unstuck.bounded(iter(range(5)), max_batches=2)
    assert [list(loader), list(loader), list(loader)] == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((3,), TypeError, "takes a loader"),
        ((Stream(),), ValueError, "has no length"),
        ((Stream(), 0), ValueError, "max_batches must be above 0"),
        ((Stream(), 2.5), TypeError, "max_batches must be a whole number"),
        ((Stream(), True), TypeError, "max_batches must be a whole number"),
        ((Stream(), None, -1), ValueError, "max_seconds must be above 0"),
        ((Stream(), None, float("nan")), ValueError, "max_seconds must be above 0"),
        ((Stream(), None, "60"), TypeError, "max_seconds must be a number"),
    ],
)
def test_bad_input(arguments: tuple[Any, ...], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        unstuck.bounded(*arguments)
