"""Places in the training's code, and what it calls by a name there."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from ... import objects, user_code
from ...records import Site


def at(code: CodeType, line: int) -> Site:
    return user_code.absolute(code.co_filename), line, user_code.name_of(code)


def of(frame: FrameType | None) -> Site | None:
    """The user's line nearest to the call."""
    here = user_frame(frame)
    return at(here.f_code, here.f_lineno) if here is not None else None


def user_frame(frame: FrameType | None) -> FrameType | None:
    return next(user_frames(frame), None)


def user_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Innermost first."""
    while frame is not None:
        if user_code.is_user_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def is_function(frame: FrameType) -> bool:
    """Its locals are its own, not those of a module or a class."""
    return frame.f_code.co_flags & objects.FAST == objects.FAST


def names(frame: FrameType | None) -> dict[str, Any]:
    """What the function of that frame calls by a name; where it is a module's own code, its globals."""
    if frame is None:
        return {}
    return objects.locals_of(frame) if is_function(frame) else dict(frame.f_globals)
