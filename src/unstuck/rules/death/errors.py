"""Exceptions as the dying processes described them, and where in them the user's code is."""

from __future__ import annotations

import os
from collections.abc import Iterable

from unstuck.model import Frame
from unstuck.recorder.records.deaths import Raised, TracedLine

LONGEST = 240


def frames_of(lines: Iterable[TracedLine]) -> tuple[Frame, ...]:
    """Innermost first."""
    return tuple(Frame(file, line, function, user=user) for file, line, function, user in lines)


def inner_frame(raised: Raised) -> Frame | None:
    """The innermost line of all."""
    return next(iter(frames_of(raised.frames[:1])), None)


def user_line(*raised: Raised) -> Frame | None:
    """The innermost line of the user's own code, in the first of these that has one."""
    return next((frame for each in raised for frame in frames_of(each.frames) if frame.user), None)


def whole(raised: Raised) -> tuple[Raised, ...]:
    """The exception and those it came from."""
    return (raised, *raised.chain)


def origin(raised: Raised) -> Raised:
    """The exception at the bottom of those it was raised from; not what it merely came after."""
    found = raised
    for before in raised.chain:
        if before.how != "cause":
            break
        found = before
    return found


def passes(raised: Raised, *ends: str, function: str = "") -> bool:
    """A frame of it lies in a file that ends so, and in that function."""
    return any(file.endswith(ends) and function in ("", name.rpartition(".")[2]) for file, _, name, _ in raised.frames)


def said(raised: Raised) -> str:
    """`ValueError: cannot reshape array of size 12`"""
    lines = [line.strip() for line in raised.message.splitlines() if line.strip()]
    first = lines[0] if lines else ""
    if first and lines[1:] and first[-1].isalnum():  # a sentence that goes on
        first = f"{first} {lines[1]}"
    text = f"{raised.type}: {first}" if first else raised.type
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def spot(frame: Frame | None) -> str:
    """data.py:31 in Shard.__getitem__; at module level the line alone."""
    if frame is None:
        return "an unknown place"
    at = f"{os.path.basename(frame.file)}:{frame.line}"
    return at if frame.function in ("<module>", "") else f"{at} in {frame.function}"
