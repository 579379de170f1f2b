"""Open files that a forked worker has from its parent: does their offset move while this process does not touch them?

A worker notes the offsets when a batch is done and looks again when the next begins; main when it waits for a batch.
What moves in between is moved by another process, through the same open file. Nothing is read, nothing is moved.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ... import attempts, flight, journal, loading, objects
from ... import layout as at
from ...loading import Loading
from ...probe import Probe
from ...records import Site
from ...records.loaders import MovedHandle
from ..learning.script_lines import ScriptLines
from ..object_walk import ObjectWalk, held_by
from .sample_code import giving, names_in, names_read

BIT = 2  # of the word that says who wants to hear of every batch
MOST_HANDLES = 8  # that are followed
MOST_BATCHES = 512  # that a process follows them for: if nothing has moved by then, nobody shares anything
MOST_MOVES = 16  # of a file, after which it need not be followed any more
COUNTED_BATCHES = 64  # in which a worker's reads are counted, until it has made one
MOST_OBJECTS, MOST_PARTS, MOST_DEPTH = 2000, 64, 5  # of a dataset, in which a file or a lock is looked for
GUARDS = ("multiprocessing.synchronize", "multiprocessing.managers", "filelock")


class Handle:
    """One open file, as it was when the process began to follow it."""

    def __init__(self, number: int, path: str, about: os.stat_result, writable: bool) -> None:
        self.number, self.path, self.file, self.writable = number, path, (about.st_dev, about.st_ino), writable
        self.at, self.written, self.times = -1, 0, 0
        self.seen: list[tuple[int, int]] = []

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

    def was_moved(self) -> bool:
        """By somebody else, since `at`; not by writing."""
        before, written = self.at, self.written
        now = self.offset() if before >= 0 else -1
        if now < 0 or now == before or self.written != written or not self.is_same():
            return False
        self.times += 1
        self.seen = [*self.seen[-4:], (before, now)]
        return True


def handle_of(number: int) -> Handle | None:
    """A plain file that can be read and is not empty, nor one that is only added to: no log."""
    import fcntl

    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or not about.st_size:
            return None
        mode = fcntl.fcntl(number, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND)
        if mode not in (os.O_RDONLY, os.O_RDWR):
            return None
        return Handle(number, os.readlink(f"/proc/self/fd/{number}"), about, mode == os.O_RDWR)
    except OSError:
        return None


def open_numbers(below: int) -> list[int]:
    """Descriptors of this process but the standard ones, in their order."""
    found = []
    with os.scandir("/proc/self/fd") as entries:
        for entry in entries:
            if int(entry.name) >= below:
                break
            found.append(int(entry.name))
    return [number for number in found if number > 2]


class SharedHandles(Probe):
    name = "handles"

    def forget(self) -> None:
        self.followed: list[Handle] = []
        self._left = 0
        self._reads = 0
        self._counted = -1
        self._pass = 0
        self._begun = loading.ByLoader(int)  # how many loaders handle was when its workers began

    def remove(self) -> None:
        self.followed = []
        self._watch()

    def pass_began(self, of: Loading, _iterator: Any) -> None:
        """In main: new workers have what is open now."""
        live_on = bool(objects.Own(of.loader()).get("persistent_workers"))
        if not of.workers or (live_on and self._begun.get(of.number) == of.loaders):
            return
        if of.number not in self._begun:
            self._left = MOST_BATCHES
        self._begun[of.number] = of.loaders
        if self._left > 0:
            self._follow()

    def worker_began(self) -> None:
        self.forget()
        if flight.words[at.W_FORKED]:
            self._left = MOST_BATCHES
            self._follow()

    def batch_asked(self, iterator: Any) -> None:
        if self.followed and loading.has_workers(iterator):
            self._rest()

    def batch_fetched(self, iterator: Any) -> None:
        if self.followed and loading.has_workers(iterator):
            self._work(None)

    def fetch_began(self, fetcher: Any) -> None:
        """In a worker. At the beginning of a pass nothing is asked: between two passes main may well read for itself,
        and disturbs nobody."""
        if not self.followed:
            return
        if id(fetcher) != self._pass:
            self._pass = id(fetcher)
            for handle in self.followed:
                handle.at = -1
        self._work(loading.dataset_of_fetcher(fetcher))
        if not self._reads and self.followed and self._left > MOST_BATCHES - COUNTED_BATCHES:
            self._counted = _read_calls()

    def fetch_ended(self) -> None:
        if self._counted >= 0:
            self._reads, self._counted = max(0, _read_calls() - self._counted - 1), -1
        if self.followed:
            self._rest()

    def _follow(self) -> None:
        handles = map(handle_of, open_numbers(at.HIGH))  # ours are above
        self.followed = list(islice((handle for handle in handles if handle is not None), MOST_HANDLES))
        self._watch()

    def _watch(self) -> None:
        state = flight.state
        state[flight.WATCHED] = state[flight.WATCHED] | BIT if self.followed else state[flight.WATCHED] & ~BIT

    def _rest(self) -> None:
        """From here on this process does not touch them."""
        for handle in self.followed:
            handle.at = handle.offset()

    def _work(self, dataset: Any) -> None:
        """It is about to touch them again: who moved them meanwhile?"""
        self._left -= 1
        self.followed = [handle for handle in self.followed if self._left >= 0 and handle.times < MOST_MOVES]
        self._watch()
        for handle in self.followed:
            if handle.was_moved() and not handle.times & (handle.times - 1):
                self._tell(handle, dataset)

    def _tell(self, handle: Handle, dataset: Any) -> None:
        worker = flight.words[at.W_WORKER]
        attribute = held_as(dataset, handle.number) if dataset is not None else ""
        journal.tell(
            MovedHandle(
                fd=handle.number,
                path=handle.path,
                device=handle.file[0],
                inode=handle.file[1],
                times=handle.times,
                seen=handle.seen,
                worker=worker if worker >= 0 else None,
                reads=self._reads,
                attribute=attribute,
                opened=opened_at(dataset, attribute),
                guarded=dataset is not None and is_guarded(dataset),
                step=flight.steps(),
            )
        )


def _read_calls() -> int:
    """Calls of read and its like that this process has made."""
    handle = os.open(attempts.OURS, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(handle, 4096).partition(b"syscr:")[2].split()[0])
    finally:
        os.close(handle)


# --- by which name a dataset holds an open file, and whether it holds a lock that may guard it ----------------------


def held_as(dataset: Any, number: int) -> str:
    """The attribute that is, or leads to, this descriptor; empty if none is found."""
    by_number = "lseek" in names_read(dataset)
    found = (path for path, thing in _reached(dataset) if descriptor(thing, by_number) == number)
    return next(found, "").lstrip(".")


def opened_at(dataset: Any, attribute: str) -> Site | None:
    """The line that gives this attribute its value."""
    first = attribute.partition(".")[0].partition("[")[0]
    return ScriptLines().assigned(type(dataset), first) if first else None


def is_guarded(dataset: Any) -> bool:
    """There is a lock that may guard its files: this process locks files; the dataset holds a lock; or its sample path
    names one."""
    if attempts.locks_files() or any(_is_guard(thing) for _, thing in _reached(dataset)):
        return True
    named = ((function.__globals__, name) for function in giving(dataset) for name in names_in(function))
    return any(_is_guard(space.get(name)) for space, name in named)


def descriptor(thing: Any, by_number: bool) -> int | None:
    """Of Python's own file objects, down to the bare file; of a plain number where files are moved by theirs."""
    kind = type(thing)
    try:
        if kind is io.TextIOWrapper:
            return descriptor(thing.buffer, False)
        if kind is io.BufferedReader or kind is io.BufferedRandom:
            return descriptor(thing.raw, False)
        if kind is io.FileIO:
            return int(thing.fileno())
    except ValueError:  # closed
        return None
    return thing if by_number and kind is int else None


def _reached(dataset: Any) -> Iterator[tuple[str, Any]]:
    """The dataset and what it holds, plain numbers too, handle with its path."""
    walk = ObjectWalk(lambda thing: held_by(thing, MOST_PARTS), MOST_OBJECTS, MOST_DEPTH, skip=frozenset())
    return walk.over([("", dataset)])


def _is_guard(thing: Any) -> bool:
    return objects.module_of(type(thing)).startswith(GUARDS)
