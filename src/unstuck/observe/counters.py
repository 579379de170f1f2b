"""Counters of one process that show progress, and limits it may run into."""

from __future__ import annotations

import re
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
    limit = _LIMIT.search(proc.maybe(f"/proc/{pid}/limits"))
    return Counters(
        rss=int(pages[1]) * proc.PAGE if len(pages) > 1 else 0,
        io_bytes=sum(int(count) for count in _IO.findall(proc.maybe(f"/proc/{pid}/io"))),
        open_files=None if fds is None else len(fds),
        open_files_limit=int(limit[1]) if limit else None,
        device=any(is_device(target) for target in (fds or {}).values()),
    )
