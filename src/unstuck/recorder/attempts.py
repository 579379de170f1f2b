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

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
OURS = "/proc/self/io"
_LOCKING = frozenset(("fcntl.flock", "fcntl.lockf"))
_EVENTS = frozenset(("open", "time.sleep", "socket.connect")) | _LOCKING
EVENT_FILE, MAX_EVENT_FILES = b"/events.out.tfevents.", 64  # TensorBoard's own writer names it in bytes
_CUT = slice(0, at.TARGET_SIZE)


class Attempts:
    __slots__ = ("_active", "_attempts", "_event_files", "_locks", "_place", "_sleeps")

    def __init__(self) -> None:
        self._active, self._locks = True, False
        self._place = -1
        self._attempts = self._sleeps = 0
        self._event_files: set[bytes] = set()

    def install(self) -> None:
        sys.addaudithook(self._hear)
        guard.on("attempts", self._silence)

    def _silence(self) -> None:
        self._active = False

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS or not self._active:
            return
        if event in _LOCKING:
            self._locks = True
            return
        try:
            self._note(event, arguments)
        except Exception as fault:
            guard.off("attempts", fault)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        w = flight.words
        place = at.place_of(w)
        if place != self._place:
            self._place, self._attempts, self._sleeps = place, 0, 0
            w[at.W_ATTEMPTS] = w[at.W_SLEEPS] = 0
        if event == "time.sleep":
            self._sleeps += 1
            w[at.W_SLEEPS] = self._sleeps
            return
        target = opened(arguments[0]) if event == "open" else connected_to(arguments[1])
        if target is None:
            return
        self._attempts += 1
        w[at.W_ATTEMPTS] = self._attempts
        w[at.W_ATTEMPTS_AT] = place
        flight.write_text(at.W_TARGET_LENGTH, at.TARGET_AT, at.TARGET_SIZE, target)
        if type(target) is bytes and EVENT_FILE in target and target not in self._event_files:
            self._note_event_file(target)

    def _note_event_file(self, path: bytes) -> None:
        """The training writes for TensorBoard, which opens its file anew for each write: once is enough."""
        from . import journal, user_code
        from .records.loops import EventFile

        if len(self._event_files) < MAX_EVENT_FILES and len(path) < at.TARGET_SIZE:
            self._event_files.add(path)
            journal.write(EventFile(path=user_code.absolute(path.decode(errors="surrogateescape"))))

    def last(self) -> str:
        """What the sample in work opened, or connected to, last."""
        w = flight.words
        if self._attempts and self._place == at.place_of(w):
            return flight.text(at.W_TARGET_LENGTH, at.TARGET_AT, at.TARGET_SIZE)
        return ""

    def locks_files(self) -> bool:
        """This process has locked a file; in a worker, since it began."""
        return self._locks

    def worker_began(self) -> None:
        self._locks = False


def opened(path: Any) -> str | bytes | None:
    target = plain_path(path)
    if type(target) is str and (target == OURS or target.startswith((HERE, flight.path or HERE))):
        return None  # our own files are none of theirs
    return target


def plain_path(path: Any) -> str | bytes | None:
    """A path as text, cut short before it is copied. A user's own class of paths is not asked: that would run it."""
    if type(path) is getattr(sys.modules.get("pathlib"), "PosixPath", None):
        path = path.__fspath__()
    return _cut(path)


def connected_to(address: Any) -> str | bytes | None:
    """host:port, or the path of a Unix socket."""
    if issubclass(type(address), tuple):
        parts = tuple.__getitem__(address, slice(0, 2))
        return ":".join(str(part if type(part) is int else _cut(part)) for part in parts)
    return _cut(address)


def _cut(text: Any) -> str | bytes | None:
    """Its beginning, by the base class's own method; None if it is no text."""
    if issubclass(type(text), str):
        return str.__getitem__(text, _CUT)
    if issubclass(type(text), bytes):
        return bytes.__getitem__(text, _CUT)
    return None


_attempts = Attempts()
install, last, locks_files, worker_began = (
    _attempts.install, _attempts.last, _attempts.locks_files, _attempts.worker_began
)  # fmt: skip
