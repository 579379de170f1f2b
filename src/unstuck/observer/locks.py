"""Locks somebody waits for: file locks with their path and real holder, futexes in private and shared memory.

The pid that /proc/locks gives for an flock is whoever took it, which may be dead while children that inherited
the open file still hold it. The kernel names each lock in the fdinfo of every descriptor that holds it: that is
proof, so it goes first, and also finds the holders of open-file-description locks, which carry no pid at all.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from unstuck.model import FileLock

from . import proc
from .descriptors import Descriptors, info
from .syscalls import Call

_LINE = re.compile(
    r"^(?:lock:\s+)?\d+:(?P<waits> ->)?\s+(?P<kind>\S+)\s+\S+\s+(?P<mode>\S+)\s+(?P<pid>-?\d+)"
    r"\s+(?P<file>[0-9a-f]+:[0-9a-f]+:(?P<inode>\d+))"
)
_INODE = re.compile(r"^ino:\s+(\d+)", re.MULTILINE)
_LOCK_COMMANDS = {7: "POSIX", 38: "OFDLCK"}  # F_SETLKW, F_OFD_SETLKW

_FUTEX_PRIVATE, _FUTEX_COMMAND = 0x80, 0x7F
_WAIT, _WAIT_BITSET = 0, 9
_SHARED = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S{3}s [0-9a-f]+ (\S+) (\d+) *(.*)$", re.MULTILINE)
_OWN_STACK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class LockLine:
    kind: str
    mode: str
    pid: int
    file: str  # device and inode, as the kernel writes them
    inode: int
    waits: bool


def parse_locks(text: str) -> list[LockLine]:
    """Lines of /proc/locks, or the `lock:` lines of an fdinfo."""
    matches = filter(None, map(_LINE.match, text.splitlines()))
    return [
        LockLine(line["kind"], line["mode"], int(line["pid"]), line["file"], int(line["inode"]), bool(line["waits"]))
        for line in matches
    ]


def kind_waited_for(call: Call) -> str:
    """The kind of file lock that a call waits for; empty if it waits for none."""
    if call.name == "flock":
        return "FLOCK"
    return _LOCK_COMMANDS.get(call.args[1], "") if call.name == "fcntl" else ""


@dataclass(frozen=True, slots=True)
class Holding:
    """What is known of the lock one thread waits for."""

    path: str
    kind: str
    mode: str
    holders: tuple[int, ...]  # living processes that hold it, whoever took it first; proven for those in the tree
    recorded: int | None  # the pid that took it, dead or alive


class Locks:
    """All file locks of the machine as /proc/locks shows them, read once a look when first needed."""

    def __init__(self, descriptors: Descriptors) -> None:
        self._descriptors = descriptors
        self._lines: list[LockLine] | None = None

    def waited_for(self, pid: int, fd: int, kind: str) -> Holding:
        inode = _inode_of(pid, fd)
        held = (line for line, waiter in self._waiting() if waiter.pid == pid and inode in (None, line.inode))
        alike = (line for line in self._all() if not line.waits and inode == line.inode and _conflicts(line.kind, kind))
        listed = next(held, None) or next(alike, None)  # under which the waiter is listed; else any on the same file
        return self._holding(self._descriptors.target(pid, fd), inode, kind, listed)

    def listed_for(self, pid: int) -> tuple[int | None, Holding] | None:
        """The lock that a process waits for, and its descriptor, where the kernel does not show the call itself."""
        held = next((line for line, waiter in self._waiting() if waiter.pid == pid), None)
        if held is None:
            return None
        fd = next((fd for fd in self._descriptors.of(pid) or () if _inode_of(pid, fd) == held.inode), None)
        path = "" if fd is None else self._descriptors.target(pid, fd)
        shown = path or f"a file (inode {held.inode} of device {held.file.rpartition(':')[0]})"
        return fd, self._holding(shown, held.inode, held.kind, held)

    def _holding(self, path: str, inode: int | None, kind: str, listed: LockLine | None) -> Holding:
        proven = self._proven(path, inode, kind)
        recorded = listed.pid if listed and listed.pid > 0 else None
        holders = tuple(sorted(proven, key=lambda pid: pid != recorded))
        if not holders and recorded is not None and proc.alive(recorded):
            holders = (recorded,)
        line = next(iter(proven.values()), None) or listed
        took = recorded if recorded is not None else next(iter(proven), None)
        return Holding(path, line.kind if line else kind, line.mode if line else "", holders, took)

    def _waiting(self) -> Iterator[tuple[LockLine, LockLine]]:
        """Each lock that is waited for, with each that waits."""
        held: LockLine | None = None
        for line in self._all():
            if not line.waits:
                held = line
            elif held is not None and line.inode == held.inode:
                yield held, line

    def _all(self) -> list[LockLine]:
        if self._lines is None:
            self._lines = parse_locks(proc.maybe("/proc/locks", 1 << 22))
        return self._lines

    def _proven(self, path: str, inode: int | None, wanted: str) -> dict[int, LockLine]:
        """Processes of the tree with a descriptor that holds a lock of this kind on this file."""
        holders: dict[int, LockLine] = {}
        for pid, fds in self._descriptors.having(path).items():
            for line in (line for fd in fds for line in parse_locks(info(pid, fd))):
                if _conflicts(line.kind, wanted) and inode in (None, line.inode):
                    holders.setdefault(pid, line)
        return holders


def file_locks(waits: Iterable[tuple[int, Holding]]) -> tuple[FileLock, ...]:
    """One entry for each lock: its first living holder, else the pid that took it; with all who wait."""
    waiters: dict[tuple[str, str], dict[int, Holding]] = {}
    for pid, holding in waits:
        waiters.setdefault((holding.path, holding.kind), {}).setdefault(pid, holding)
    return tuple(_entry(next(iter(waiting.values())), tuple(waiting)) for waiting in waiters.values())


def _entry(holding: Holding, waiters: tuple[int, ...]) -> FileLock:
    others = [pid for pid in holding.holders if pid not in waiters]
    holder = next(iter((*others, *holding.holders)), holding.recorded)
    return FileLock(
        path=holding.path,
        kind=holding.kind,
        mode=holding.mode,
        holder=holder,
        holder_command=" ".join(proc.command(holder)) if holder is not None else "",
        holder_alive=proc.alive(holder) if holder is not None else None,
        waiters=waiters,
    )


def _conflicts(kind: str, wanted: str) -> bool:
    """flock locks know nothing of the others; POSIX and open-file-description locks exclude each other."""
    return (kind == "FLOCK") == (wanted == "FLOCK")


def _inode_of(pid: int, fd: int) -> int | None:
    match = _INODE.search(info(pid, fd))
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class SharedMapping:
    start: int
    end: int
    file: tuple[str, str]  # device and inode: the same in every process that maps it
    path: str


class Maps:
    """Shared mappings of the tree, read once a look when first needed: a torch process has thousands in all."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = tuple(pids)
        self._shared: dict[int, list[SharedMapping] | None] = {}

    def readable(self, pid: int) -> bool:
        return self._of(pid) is not None

    def shared_at(self, pid: int, address: int) -> SharedMapping | None:
        return next((one for one in self._of(pid) or () if one.start <= address < one.end), None)

    def sharing(self, mapping: SharedMapping) -> tuple[int, ...]:
        """Who in the tree maps the same file."""
        return tuple(pid for pid in self._pids if any(one.file == mapping.file for one in self._of(pid) or ()))

    def _of(self, pid: int) -> list[SharedMapping] | None:
        if pid not in self._shared:
            maps = proc.maybe(f"/proc/{pid}/maps", 1 << 24)
            self._shared[pid] = shared_mappings(maps) if maps else None
        return self._shared[pid]


def shared_mappings(maps: str) -> list[SharedMapping]:
    """From the text of a `maps` file."""
    return [
        SharedMapping(int(start, 16), int(end, 16), (device, inode), path)
        for start, end, device, inode, path in _SHARED.findall(maps)
    ]


def is_futex_wait(call: Call) -> bool:
    return call.name == "futex" and call.args[1] & _FUTEX_COMMAND in (_WAIT, _WAIT_BITSET)


def is_private(call: Call) -> bool:
    """By the flag of the futex call; where it is not set, only the mapping can say."""
    return bool(call.args[1] & _FUTEX_PRIVATE)


def looks_like_semaphore(call: Call) -> bool:
    """glibc waits for a semaphore with WAIT_BITSET while the value is 0; PyMutex parks on the waiter's own stack."""
    on_own_stack = 0 <= call.args[0] - call.stack < _OWN_STACK_BYTES
    return call.args[1] & _FUTEX_COMMAND == _WAIT_BITSET and call.args[2] & 0xFFFFFFFF == 0 and not on_own_stack


def semaphore_value(pid: int, address: int, *, waited_for: bool) -> int | None:
    """Value of a glibc sem_t: the low half of a 64-bit word whose high half counts the waiters."""
    data = proc.memory(pid, address, 8)
    if data is None:
        return None
    value, waiters = struct.unpack("<II", data)
    if waited_for and not 1 <= waiters < 1 << 16:  # no waiter counted: a condition variable, not a semaphore
        return None
    return int(value) if value < 1 << 31 else None
