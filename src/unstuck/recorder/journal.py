"""Writes records, one JSON line each, beside the flight file."""

from __future__ import annotations

import errno
import os
import time

from . import flight
from . import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .records import Record

LIMIT = 4000  # lines a process; a hook gone wild must not fill the disk
NONE_LEFT = (errno.EMFILE, errno.ENFILE)
LAST = frozenset(("Died", "LeftByExit"))  # of these there is one, at the end


class Journal:
    """Where the records of this process go."""

    __slots__ = ("path", "written")

    def __init__(self) -> None:
        self.start(None)

    def start(self, path: str | None) -> None:
        """Write to `path` from here on; None: nowhere."""
        self.path, self.written = path, 0

    def write(self, record: Record) -> None:
        """Append one record. A single O_APPEND write: complete or absent, also when the process dies right after."""
        kind = type(record).__name__
        if self.path is None or (self.written >= LIMIT and kind not in LAST):
            return
        self.written += 1
        raw = encode(record)
        try:
            self._append(raw)
        except OSError:  # a full disk, or no descriptor left: perhaps the very thing that is to be told
            if not flight.write_last(raw):
                raise

    def tell(self, record: Record) -> None:
        """Append a record that may decide a rule: the supervisor applies the rules when it sees it."""
        self.write(record)
        flight.words[at.W_NEWS] += 1

    def replace(self, record: Record, suffix: str) -> None:
        """A record that is the whole each time: it takes the place of the one before, in a file of its own. Where the
        script has left no descriptor, the one before stays."""
        if self.path is None:
            return
        target = self.path[: -len(at.RECORDS)] + suffix
        try:
            handle = os.open(target + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            if fault.errno not in NONE_LEFT:
                raise
            return
        try:
            raw = memoryview(encode(record))
            while raw:
                raw = raw[os.write(handle, raw) :]
        finally:
            os.close(handle)
        os.rename(target + ".new", target)
        flight.words[at.W_NEWS] += 1

    def _append(self, raw: bytes) -> None:
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)  # type: ignore[arg-type]
        try:
            written = os.write(handle, raw)
            if written < len(raw):
                os.ftruncate(handle, os.fstat(handle).st_size - written)
                raise OSError("only a part of it could be written")
        finally:
            os.close(handle)


def encode(record: Record) -> bytes:
    import json

    about = plain(record)
    about.update(pid=os.getpid(), at=time.monotonic())
    line = {"record": type(record).__name__, "data": about}
    return (json.dumps(line, default=str) + "\n").encode("utf-8", "replace")


def plain(value: Any) -> Any:
    """Records as dicts, all the way down."""
    from .records import Struct  # once a record, not at start

    def within(value: Any) -> Any:
        if issubclass(type(value), Struct):
            return {name: within(getattr(value, name)) for name in value.FIELDS}
        if type(value) in (list, tuple):
            return [within(each) for each in value]
        return {key: within(each) for key, each in value.items()} if type(value) is dict else value

    return within(value)


_journal = Journal()
start, write, tell, replace = _journal.start, _journal.write, _journal.tell, _journal.replace
