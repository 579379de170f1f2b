"""What the code in work keeps trying: files it opens, addresses it connects to, how often it sleeps.

An audit hook sees these before they happen and cannot be taken out, so it can be switched off. The counts are
of the sample in work: they begin again when the position moves.
"""

from __future__ import annotations

import os
import sys

from . import flight, guard
from . import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_active = True
_place: tuple[int, ...] = (-1, -1)
_attempts = 0
_sleeps = 0
locks_files = False
"""This process has locked a file; in a worker, since it began."""


def install() -> None:
    sys.addaudithook(_hear)
    guard.on("attempts", _silence)


def _silence() -> None:
    global _active
    _active = False


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    global locks_files
    if event not in _EVENTS or not _active:
        return
    if event in _LOCKING:
        locks_files = True
        return
    try:
        note(event, arguments)
    except Exception as fault:
        guard.off("attempts", fault)


def note(event: str, arguments: tuple[Any, ...]) -> None:
    global _place, _attempts, _sleeps
    w = flight.words
    place = (w[at.W_SEAM], w[at.W_SAMPLE], w[at.W_POSITION])
    if place != _place:
        _place, _attempts, _sleeps = place, 0, 0
        w[at.W_ATTEMPTS] = w[at.W_SLEEPS] = 0
    if event == "time.sleep":
        _sleeps += 1
        w[at.W_SLEEPS] = _sleeps
        return
    target = _target(event, arguments)
    if target is None:
        return
    _attempts += 1
    w[at.W_ATTEMPTS] = _attempts
    w[at.W_ATTEMPTS_AT] = at.place_of(w)
    flight.write_text(at.W_TARGET_LENGTH, at.TARGET_AT, at.TARGET_SIZE, target)


def last() -> str | None:
    """What the sample in work opened, or connected to, last."""
    w = flight.words
    if _attempts and _place == (w[at.W_SEAM], w[at.W_SAMPLE], w[at.W_POSITION]):
        return flight.text(at.W_TARGET_LENGTH, at.TARGET_AT, at.TARGET_SIZE)
    return None


def _target(event: str, arguments: tuple[Any, ...]) -> str | bytes | None:
    if event == "open":
        path: str | bytes | int | os.PathLike[str] = arguments[0]
        if isinstance(path, (str, bytes)):
            ours = isinstance(path, str) and (path == OURS or (flight.path and path.startswith(flight.path)))
            return None if ours else path  # our own files are none of theirs
        return None if isinstance(path, int) else os.fspath(path)
    address: str | bytes | tuple[object, ...] = arguments[1]
    if isinstance(address, tuple):
        return ":".join(map(str, address[:2]))
    return address


OURS = "/proc/self/io"
_LOCKING = frozenset(("fcntl.flock", "fcntl.lockf"))
_EVENTS = frozenset(("open", "time.sleep", "socket.connect")) | _LOCKING
