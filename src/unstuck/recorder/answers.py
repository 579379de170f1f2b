"""Answers what the supervisor asks through the request word, at the next seam of the training thread."""

from __future__ import annotations

import sys

from . import facts, flight, guard
from . import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


def give() -> None:
    """Called at a seam, on the thread that trains, while something is asked for."""
    w = flight.words
    wanted, w[at.W_REQUEST] = w[at.W_REQUEST], 0
    frame = sys._getframe(1)
    if wanted & at.ASK_LOOPS:
        _part("loops", frame)
    if wanted & at.ASK_GROWTH:
        _part("growth", frame)
    w[at.W_ANSWERED] += 1


def _part(name: str, frame: FrameType) -> None:
    """One answer: a module of that name, loaded when first asked for, with a function `describe(frame)`."""
    if name in guard.OFF:
        return
    try:
        described = _describers[name](frame)
        if described is not None:
            facts.tell(name, described)
    except Exception as fault:
        guard.off(name, fault)


def _loops(frame: FrameType) -> object:
    from .probes.loops.describe import describe

    return describe(frame)


def _growth(frame: FrameType) -> object:
    from .probes.memory.growth import describe

    return describe(frame)


_describers = {"loops": _loops, "growth": _growth}
