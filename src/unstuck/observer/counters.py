"""Counters of one process that show progress, and limits it may run into."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass

from . import proc
from .fds import Descriptors, is_device

_IO = re.compile(r"^[rw]char: (\d+)", re.MULTILINE)
_LIMIT = re.compile(r"^Max open files\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Counters:
    rss: int
    io_bytes: int
    open_files: int | None
    open_files_limit: int | None
    device: bool


def read_counters(pid: int, descriptors: Descriptors) -> Counters:
    pages = proc.maybe(f"/proc/{pid}/statm").split()
    fds = descriptors.of(pid)
    io = proc.maybe(f"/proc/{pid}/io")
    limit = _LIMIT.search(proc.maybe(f"/proc/{pid}/limits"))
    return Counters(
        rss=int(pages[1]) * proc.PAGE if len(pages) > 1 else 0,
        io_bytes=sum(int(count) for count in _IO.findall(io)),
        open_files=None if fds is None else len(fds),
        open_files_limit=int(limit[1]) if limit else None,
        device=any(is_device(target) for target in (fds or {}).values()),
    )


def quiet(pid: int, descriptors: Descriptors) -> float | None:
    """Seconds since anybody wrote to where its output goes: a file, a pipe, a terminal. None: not known.

    Files of a network mount are not touched: asking could block as it may block the target."""
    written = []
    for fd in (1, 2):
        target = descriptors.target(pid, fd)
        if not target or target == "/dev/null" or descriptors.remote(pid, fd):
            continue
        try:
            written.append(os.stat(f"/proc/{pid}/fd/{fd}").st_mtime)
        except OSError:
            continue
    return max(0.0, time.time() - max(written)) if written else None
