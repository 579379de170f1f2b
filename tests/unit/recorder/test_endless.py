"""Streams that go round for ever, and those that only give their samples several times."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from unstuck.recorder.probes.loops import endless_stream

DATA = [1, 2, 3]


def rounds(rows: list[int]) -> Iterator[int]:
    while True:
        yield from rows


class ByFunction:
    def __iter__(self) -> Iterator[int]:
        yield from (row + 1 for row in rounds(DATA))


class ByMethod:
    def __iter__(self) -> Iterator[int]:
        return self._walk()

    def _walk(self) -> Iterator[int]:
        # round
        while not self.over():
            for row in DATA:
                if row > 2:
                    break
                yield row
            else:
                raise ValueError("no such row")

    def over(self) -> bool:
        return False


class Cycled:
    def __iter__(self) -> Iterator[int]:
        return iter(itertools.cycle(DATA))


class Held:
    def __init__(self) -> None:
        self.rows = itertools.cycle(DATA)

    def __iter__(self) -> Iterator[int]:
        yield from self.rows


class Again:
    def __iter__(self) -> Iterator[int]:
        yield from DATA
        yield from self


class Wrapped:
    def __init__(self) -> None:
        self.inner = ByMethod()

    def __iter__(self) -> Iterator[int]:
        yield from self.inner


class SeveralTimes:
    def __init__(self) -> None:
        self.paths = DATA * 10

    def __iter__(self) -> Iterator[int]:
        yield from self.paths


class Counted:
    def __iter__(self) -> Iterator[int]:
        done = 0
        while done < 10:
            yield from DATA
            done += 1


class Left:
    def __iter__(self) -> Iterator[int]:
        done = 0
        while True:
            yield from DATA
            done += 1
            if done == 10:
                return


class Repeated:
    def __iter__(self) -> Iterator[Any]:
        for rows in itertools.repeat(DATA, 10):
            yield from rows


class Waits:
    """A loop without an end that gives nothing."""

    def __iter__(self) -> Iterator[int]:
        return iter(DATA)

    def refill(self) -> None:
        while True:
            DATA.append(1)


@pytest.mark.parametrize("kind", [ByFunction, ByMethod, Cycled, Held, Again, Wrapped], ids=lambda kind: kind.__name__)
def test_it_goes_round(kind: Any) -> None:
    assert endless_stream.goes_round(kind())


@pytest.mark.parametrize("kind", [SeveralTimes, Counted, Left, Repeated, Waits], ids=lambda kind: kind.__name__)
def test_it_comes_to_an_end(kind: Any) -> None:
    assert not endless_stream.goes_round(kind())


def test_nothing_of_it_is_run() -> None:
    class Odd:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    assert not endless_stream.goes_round(Odd())
    assert not endless_stream.goes_round(None)
