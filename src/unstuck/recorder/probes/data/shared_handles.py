"""Open files that a forked worker has from its parent: does their offset move while this process does not touch them?

A worker notes the offsets when a batch is done and looks again when the next begins; main when it waits for a batch.
What moves in between is moved by another process, through the same open file. Nothing is read, nothing is moved.
"""

from __future__ import annotations

import os
import stat

from ... import facts, flight
from ... import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST = 8
"""Descriptors that are followed."""
TIMES = 512
"""Batches a process follows them for: if nothing has moved by then nobody shares anything."""
ENOUGH = 16
"""Times a file has moved, after which it need not be followed any more."""
COUNTED = 64
"""Batches in which a worker's reads are counted, until it has made one."""
IO = "/proc/self/io"
followed: list[Handle] = []
_left = 0
_reads = 0
_counted = -1
_pass = 0


class Handle:
    """One open file, as it was when the process began to follow it."""

    __slots__ = ("at", "file", "number", "path", "seen", "times", "writable", "written")

    def __init__(self, number: int, path: str, about: os.stat_result, writable: bool) -> None:
        self.number, self.path, self.file, self.writable = number, path, (about.st_dev, about.st_ino), writable
        self.at, self.written, self.times = -1, 0, 0
        self.seen: list[list[int]] = []

    def offset(self) -> int:
        """-1: it was closed, or is no plain file any more."""
        try:
            if self.writable:
                self.written = os.fstat(self.number).st_mtime_ns
            return os.lseek(self.number, 0, os.SEEK_CUR)
        except OSError:
            return -1

    def is_same(self) -> bool:
        """The number is still this file's."""
        about = os.fstat(self.number)
        return (about.st_dev, about.st_ino) == self.file


def follow() -> None:
    """Take in what is open now: plain files that can be read, but not logs, nor standard input and output."""
    global _left, _reads, _counted
    followed.clear()
    _left, _reads, _counted = TIMES, 0, -1
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if 2 < number < at.HIGH and len(followed) < MOST:  # ours are above
            try:
                about = os.fstat(number)
                if not stat.S_ISREG(about.st_mode) or not about.st_size:
                    continue
                mode = _flags(number) & (os.O_ACCMODE | os.O_APPEND)
                if mode in (os.O_RDONLY, os.O_RDWR):
                    path = os.readlink(f"/proc/self/fd/{number}")
                    followed.append(Handle(number, path, about, mode == os.O_RDWR))
            except OSError:
                continue


def _flags(number: int) -> int:
    import fcntl

    return fcntl.fcntl(number, fcntl.F_GETFL)


def rests() -> None:
    """From here on this process does not touch them."""
    global _reads, _counted
    if _counted >= 0:
        _reads, _counted = max(0, _read_calls() - _counted - 1), -1
    for each in followed:
        each.at = each.offset()


def works(fetcher: Any = None) -> None:
    """It is about to touch them again: who moved them meanwhile? Not asked at the beginning of a pass: between two
    passes main may well read for itself, and disturbs nobody."""
    global _left, _counted, _pass
    _left -= 1
    followed[:] = [each for each in followed if _left >= 0 and each.times < ENOUGH]
    dataset = None
    if fetcher is not None:
        dataset = fetcher.dataset
        if id(fetcher) != _pass:
            _pass = id(fetcher)
            for each in followed:
                each.at = -1
    for each in followed:
        before, written = each.at, each.written
        if before < 0:
            continue
        now = each.offset()
        if now >= 0 and now != before and each.written == written and each.is_same():
            each.times += 1
            each.seen = [*each.seen[-4:], [before, now]]
            if not each.times & (each.times - 1):
                _tell(each, dataset)
    if dataset is not None and not _reads and followed and _left > TIMES - COUNTED:
        _counted = _read_calls()


def _read_calls() -> int:
    """Calls of read and its like that this process has made."""
    handle = os.open(IO, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(handle, 4096).partition(b"syscr:")[2].split()[0])
    finally:
        os.close(handle)


def _tell(each: Handle, dataset: Any) -> None:
    from . import handle_names

    worker = flight.words[at.W_WORKER]
    about = {"fd": each.number, "path": each.path, "file": list(each.file), "times": each.times, "seen": each.seen}
    named = handle_names.about(dataset, each.number) if dataset is not None else {}
    told = {**about, **named, "worker": worker if worker >= 0 else None, "reads": _reads, "step": flight.steps()}
    facts.tell("handle-moved", told)
