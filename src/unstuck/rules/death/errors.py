"""Exceptions as the dying processes described them, and where in them the user's code is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from unstuck.model import Fact, Frame

LONGEST = 240


@dataclass(frozen=True)
class Error:
    """One exception, and those it came from."""

    pid: int
    at: float
    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    """Innermost first."""
    chain: tuple[Error, ...] = ()
    kind: str = ""
    """Of the fact: exception, batch-failed, sample-failed."""
    data: dict[str, Any] = field(default_factory=dict)
    """The fact it was in, for what was measured with it."""

    @cached_property
    def user(self) -> Frame | None:
        """The innermost line of the user's own code."""
        return next((frame for frame in self.frames if frame.user), None)

    @cached_property
    def origin(self) -> Error:
        """The exception at the bottom of those it was raised from; not what it merely came after."""
        error: Error = self
        for before in self.chain:
            if before.data.get("how") != "cause":
                break
            error = before
        return error

    @property
    def whole(self) -> tuple[Error, ...]:
        return (self, *self.chain)

    @property
    def errno(self) -> int | None:
        number = self.data.get("errno")
        return number if isinstance(number, int) else None

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self.data.get("files") or ())

    @property
    def measured(self) -> dict[str, Any]:
        found = self.data.get("measured")
        return found if isinstance(found, dict) else {}

    @property
    def torch(self) -> dict[str, Any]:
        found = self.data.get("torch")
        return found if isinstance(found, dict) else {}

    @property
    def step(self) -> int | None:
        number = self.data.get("step")
        return number if isinstance(number, int) else None

    def passes(self, *ends: str, function: str = "") -> bool:
        """A frame of it lies in a file that ends so, and in that function."""
        return any(f.file.endswith(ends) and function in ("", f.function.rpartition(".")[2]) for f in self.frames)

    @property
    def said(self) -> str:
        """`ValueError: cannot reshape array of size 12`"""
        lines = [line.strip() for line in self.message.splitlines() if line.strip()]
        first = lines[0] if lines else ""
        if first and lines[1:] and first[-1].isalnum():  # a sentence that goes on
            first = f"{first} {lines[1]}"
        text = f"{self.type}: {first}" if first else self.type
        return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def error_of(fact: Fact) -> Error:
    return replace(_error(fact.pid, fact.at, fact.data), kind=fact.kind)


def _error(pid: int, at: float, data: dict[str, Any]) -> Error:
    return Error(
        pid=pid,
        at=at,
        type=str(data.get("type", "")),
        message=str(data.get("message", "")),
        frames=frames_of(data),
        chain=tuple(_error(pid, at, each) for each in data.get("chain") or () if isinstance(each, dict)),
        data=data,
    )


def frames_of(data: dict[str, Any]) -> tuple[Frame, ...]:
    return tuple(_frames(data.get("frames") or ()))


def _frames(raw: Any) -> Iterator[Frame]:
    for each in raw:
        if isinstance(each, list) and len(each) >= 3:
            user = len(each) > 3 and bool(each[3])
            yield Frame(file=str(each[0]), line=int(each[1] or 0), function=str(each[2]), user=user)


def spot(frame: Frame | None) -> str:
    """data.py:31 in Shard.__getitem__; at module level the line alone."""
    if frame is None:
        return "an unknown place"
    at = f"{os.path.basename(frame.file)}:{frame.line}"
    return at if frame.function in ("<module>", "") else f"{at} in {frame.function}"
