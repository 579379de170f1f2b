"""Rare, wordy facts, one JSON line each, beside the flight file."""

from __future__ import annotations

import os
import time

LIMIT = 4000  # lines a process; a hook gone wild must not fill the disk
LAST = ("exception", "left")  # of these there is one, at the end
_path: str | None = None
_written = 0


def start(path: str | None) -> None:
    """Write to `path` from here on; None: nowhere."""
    global _path, _written
    _path, _written = path, 0


def tell(kind: str, data: object) -> None:
    """Append a fact that may decide a rule: the supervisor applies the rules when it sees it."""
    from . import flight
    from . import layout as at

    write(kind, data)
    flight.words[at.W_NEWS] += 1


def tell_anew(kind: str, data: object, suffix: str) -> None:
    """A fact that is the whole each time: it takes the place of the one before, in a file of its own."""
    from . import flight
    from . import layout as at

    if _path is None:
        return
    target = _path[: -len(at.FACTS)] + suffix
    handle = os.open(target + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        raw = memoryview(_line(kind, data))
        while raw:
            raw = raw[os.write(handle, raw) :]
    finally:
        os.close(handle)
    os.rename(target + ".new", target)
    flight.words[at.W_NEWS] += 1


def _line(kind: str, data: object) -> bytes:
    import json

    told = {"pid": os.getpid(), "at": time.monotonic(), "kind": kind, "data": data}
    return (json.dumps(told, default=str) + "\n").encode("utf-8", "replace")


def write(kind: str, data: object) -> None:
    """Append one fact. A single O_APPEND write: complete or absent, also when the process dies right after."""
    global _written
    if _path is None or (_written >= LIMIT and kind not in LAST):
        return
    _written += 1
    raw = _line(kind, data)
    try:
        _append(raw)
    except OSError:  # a full disk, or no descriptor left: perhaps the very thing that is to be told
        if not _keep(raw):
            raise


def _append(raw: bytes) -> None:
    handle = os.open(_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)  # type: ignore[arg-type]
    try:
        written = os.write(handle, raw)
        if written < len(raw):
            os.ftruncate(handle, os.fstat(handle).st_size - written)
            raise OSError("only a part of it could be written")
    finally:
        os.close(handle)


def _keep(raw: bytes) -> bool:
    from . import flight

    return flight.write_last(raw)
