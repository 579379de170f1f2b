"""Tries a path that the target keeps trying: there or not, how old, whose pid is in it. Never creates, never blocks."""

from __future__ import annotations

import os
import re
import stat
import threading
import time

from unstuck.model import PathFact

from . import proc
from .fds import Descriptors

_SMALL = 4096
_TIME_LIMIT = 2.0
_NUMBER = re.compile(r"\b(\d{1,7})\b")
_NAMED_PID = re.compile(r"pid\W{0,4}(\d{1,7})\b", re.IGNORECASE)


def path_fact(path: str, descriptors: Descriptors) -> PathFact:
    """A network file system may not answer: then the try is left behind in its thread, and that is the fact."""
    found: list[PathFact] = []
    attempt = threading.Thread(target=lambda: found.append(_try(path)), name="path-fact", daemon=True)
    attempt.start()
    attempt.join(_TIME_LIMIT)
    if not found:
        return PathFact(path, exists=False, error=f"no answer within {_TIME_LIMIT:g} s")
    fact = found[0]
    real = os.path.realpath(path) if fact.exists else path
    users = tuple(dict.fromkeys((*descriptors.having(path), *descriptors.having(real))))
    return PathFact(path, fact.exists, fact.error, fact.age, fact.text_pid, fact.pid_alive, users)


def _try(path: str) -> PathFact:
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        return PathFact(path, exists=os.path.lexists(path), error=_text(error))
    age = max(0.0, time.time() - status.st_mtime)
    if not stat.S_ISREG(status.st_mode):  # opening a FIFO or a device has effects
        return PathFact(path, exists=True, age=age)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            content = os.read(fd, _SMALL) if status.st_size <= _SMALL else b""
        finally:
            os.close(fd)
    except OSError as error:
        return PathFact(path, exists=True, error=_text(error), age=age)
    pid = pid_in(content.decode(errors="replace"))
    return PathFact(path, exists=True, age=age, text_pid=pid, pid_alive=None if pid is None else proc.alive(pid))


def pid_in(text: str) -> int | None:
    """The pid a lock file names: "pid: 12", or the only number in it."""
    named = _NAMED_PID.findall(text)
    numbers = named or _NUMBER.findall(text)
    return int(numbers[0]) if len(set(numbers)) == 1 and int(numbers[0]) > 0 else None


def _text(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
