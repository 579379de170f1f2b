"""What a Struct promises: typed fields with defaults of their own, nothing missing, nothing unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unstuck.recorder.records import ProbeOff, Record, Struct
from unstuck.recorder.records.deaths import Died, Raised


class Inner(Struct):
    numbers: list[int] = []  # noqa: RUF012


class Outer(Record):
    name: str
    inner: Inner = Inner()
    by_name: dict[str, int] = {}  # noqa: RUF012

    @property
    def short(self) -> str:
        return self.name[:1]


def test_fields_are_those_of_the_bases_first() -> None:
    assert Outer.FIELDS == ("pid", "at", "name", "inner", "by_name")
    assert Died.FIELDS[:4] == ("pid", "at", "raised", "step")


def test_every_instance_has_defaults_of_its_own() -> None:
    one, other = Outer(name="a"), Outer(name="b")
    one.inner.numbers.append(1)
    one.by_name["x"] = 1
    assert other.inner.numbers == []
    assert other.by_name == {}
    assert (one.pid, one.short) == (0, "a")


def test_what_is_missing_or_unknown_is_an_error() -> None:
    loosely: Any = Outer
    with pytest.raises(TypeError, match="Outer: missing or unknown: name"):
        loosely()
    with pytest.raises(TypeError, match="Outer: missing or unknown: nonsense"):
        loosely(name="a", nonsense=1)


def test_a_copy_with_changes() -> None:
    died = Died(raised=Raised(type="ValueError"), step=3)
    later = replace(died, step=4)
    assert (later.step, later.raised, died.step) == (4, died.raised, 3)
    assert replace(ProbeOff(probe="x"), why="y").probe == "x"
