"""The loops around a training step as they stood at one moment: their conditions piece by piece, with the values."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from .base import Record, record


@record
class Value:
    """What an expression stands for, as far as it can be read without running anything."""

    kind: Literal["number", "bool", "text", "none", "object", "unknown"] = "unknown"
    text: str = ""
    """As Python would show it; of an object the name of its type."""
    number: int | float | None = None
    """NaN and infinity are numbers too."""


@record
class Side:
    """One side of a comparison, or a name, with its value."""

    text: str = ""
    value: Value = field(default_factory=Value)


@record
class Comparison:
    left: Side = field(default_factory=Side)
    op: Literal["<", "<=", ">", ">=", "==", "!=", "is", "is not"] = "=="
    right: Side = field(default_factory=Side)

    def sides(self, flipped: bool = False) -> tuple[Side, Side]:
        return (self.right, self.left) if flipped else (self.left, self.right)


@record
class Condition:
    """A condition or a piece of one, as it is written, with what it comes to now."""

    text: str = ""
    kind: Literal[
        "and", "or", "not",
        "call",  # of a function of the user's: `parts` has the one expression that it gives back
        "compare", "truth",
        "other",  # no expression: an `except`, a `case`, more than is read
    ] = "other"  # fmt: skip
    value: bool | None = None
    """None: not known."""
    parts: list[Condition] = field(default_factory=list)
    compared: Comparison | None = None
    tested: Value | None = None
    """Of `truth`: the value itself."""
    names: list[str] = field(default_factory=list)
    """That it reads, as written."""
    calls: bool = False
    """It calls something."""
    wanted: bool = True
    """On the way to a statement: the value that leads there."""

    @property
    def holds(self) -> bool | None:
        return None if self.value is None else self.value is self.wanted


@record
class WayOut:
    """A statement that leaves the loop, and the conditions on the way to it."""

    line: int = 0
    kind: Literal["break", "return", "raise", "exit"] = "break"
    guards: list[Condition] = field(default_factory=list)

    @property
    def met(self) -> bool | None:
        """All of the conditions hold."""
        held = [guard.holds for guard in self.guards]
        return False if False in held else None if None in held else True


@record
class Assignment:
    """A statement that gives a name a value while the loop runs."""

    line: int = 0
    kind: Literal["constant", "add", "other"] = "other"
    text: str = ""
    elsewhere: bool = False
    """It is in another function, or in a method of the object's class."""
    unread: bool = False
    """… and nothing is known of when it is run."""
    guards: list[Condition] = field(default_factory=list)


@record
class Iterated:
    """What a `for` goes through."""

    text: str = ""
    ends: bool | None = None
    """By itself; None: not known."""
    type: str = ""
    """Empty: it could not be read what it is."""
    by_index: bool = False
    """By the old protocol: indices from 0 up until IndexError; a length does not end it."""
    length: int | None = None


@record
class Counter:
    """The name that counts the rounds of a `for … in enumerate(…)`, and the most it comes to."""

    name: str = ""
    most: int = 0


@record
class DescribedLoop:
    """One `while` or `for`."""

    kind: Literal["while", "for"] = "while"
    text: str = ""
    first: int = 0
    """Line of the loop, and the last line of its head."""
    header: int = 0
    test: Condition = field(default_factory=Condition)
    """Of a `while`."""
    iterates: Iterated = field(default_factory=Iterated)
    """Of a `for`: what it goes through, the names that this gives values, the one that counts."""
    targets: list[Side] = field(default_factory=list)
    counts: Counter | None = None
    exits: list[WayOut] = field(default_factory=list)
    assigned: dict[str, list[Assignment]] = field(default_factory=dict)
    """By name that is tested: every statement that changes it."""
    accounted: list[str] = field(default_factory=list)
    """Attributes and items of these whose every change is known."""


@record
class LoopFrame:
    """A function of the user's on the stack, and the loops in it around its line, outermost first."""

    file: str = ""
    line: int = 0
    function: str = ""
    number: int = 0
    """The same for as long as this call lasts."""
    generator: bool = False
    """Whoever draws from it decides."""
    local: list[str] | None = None
    """Its own names; None: it is a module."""
    loops: list[DescribedLoop] = field(default_factory=list)


@record
class LoopSnapshot(Record):
    """The loops around one moment of the training, innermost function first."""

    step: int = 0
    passes: int = 0
    """Over any loader, begun so far."""
    frames: list[LoopFrame] = field(default_factory=list)
