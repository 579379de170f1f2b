"""File locks somebody waits for: the path, and who really holds it.

The pid that /proc/locks gives for an flock is whoever took it, which may be dead while children that inherited
the open file still hold it. The kernel names each lock in the fdinfo of every descriptor that holds it: that is
proof, so it goes first, and also finds the holders of open-file-description locks, which carry no pid at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from unstuck.model import FileLock

from . import proc
from .fds import Descriptors
from .syscalls import Call

_LINE = re.compile(
    r"^(?:lock:\s+)?\d+:(?P<waits> ->)?\s+(?P<kind>\S+)\s+\S+\s+(?P<mode>\S+)\s+(?P<pid>-?\d+)"
    r"\s+(?P<device>[0-9a-f]+:[0-9a-f]+):(?P<inode>\d+)"
)
_INODE = re.compile(r"^ino:\s+(\d+)", re.MULTILINE)
_SETLKW, _OFD_SETLKW = 7, 38


@dataclass(frozen=True, slots=True)
class LockLine:
    kind: str
    mode: str
    pid: int
    file: str
    """Device and inode, as the kernel writes them."""
    inode: int
    waits: bool


def parse_locks(text: str) -> list[LockLine]:
    """Lines of /proc/locks, or the `lock:` lines of an fdinfo."""
    found = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            file = f"{match['device']}:{match['inode']}"
            found.append(
                LockLine(
                    match["kind"], match["mode"], int(match["pid"]), file, int(match["inode"]), bool(match["waits"])
                )
            )
    return found


def waits_for_lock(call: Call) -> bool:
    return call.name == "flock" or (call.name == "fcntl" and call.args[1] in (_SETLKW, _OFD_SETLKW))


def kind_waited_for(call: Call) -> str:
    if call.name == "flock":
        return "FLOCK"
    return "POSIX" if call.args[1] == _SETLKW else "OFDLCK"


@dataclass(frozen=True, slots=True)
class Holding:
    """What is known of the lock one thread waits for."""

    path: str
    kind: str
    mode: str
    holders: tuple[int, ...]
    """Living processes that hold it, whoever took it first; proven by fdinfo for those in the tree."""
    recorded: int | None
    """The pid that took it, dead or alive."""


class Locks:
    """All locks of the machine as /proc/locks shows them, read once a look when first asked for."""

    def __init__(self, descriptors: Descriptors) -> None:
        self._descriptors = descriptors
        self._lines: list[LockLine] | None = None

    def waited_for(self, pid: int, fd: int, call: Call) -> Holding:
        path = self._descriptors.target(pid, fd)
        wanted = kind_waited_for(call)
        proven = self._proven(path, _inode_of(pid, fd), wanted)
        listed = self._listed(pid, _inode_of(pid, fd), wanted)
        example = next(iter(proven.values()), None) or listed
        recorded = listed.pid if listed and listed.pid > 0 else None
        if recorded in proven:
            holders: tuple[int, ...] = (recorded, *(holder for holder in proven if holder != recorded))
        elif proven:
            holders = tuple(proven)
        elif recorded is not None and proc.alive(recorded):
            holders = (recorded,)
        else:
            holders = ()
        return Holding(
            path=path,
            kind=example.kind if example else wanted,
            mode=example.mode if example else "",
            holders=holders,
            recorded=recorded if recorded is not None else next(iter(proven), None),
        )

    def listed_for(self, pid: int) -> tuple[int | None, Holding] | None:
        """The lock that a process waits for, and its descriptor, where the kernel does not show the call itself."""
        for held, waiter in self._waiting():
            if waiter.pid != pid:
                continue
            fd = next((fd for fd in self._descriptors.of(pid) or () if _inode_of(pid, fd) == held.inode), None)
            path = "" if fd is None else self._descriptors.target(pid, fd)
            shown = path or f"a file (inode {held.inode} of device {held.file.rpartition(':')[0]})"
            proven = self._proven(path, held.inode, held.kind) if path else {}
            recorded = held.pid if held.pid > 0 else None
            holders = tuple(proven) or ((recorded,) if recorded is not None and proc.alive(recorded) else ())
            return fd, Holding(shown, held.kind, held.mode, holders, recorded)
        return None

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
        found: dict[int, LockLine] = {}
        for pid, fds in self._descriptors.having(path).items():
            for fd in fds:
                info = proc.maybe(f"/proc/{pid}/fdinfo/{fd}")
                for line in parse_locks("\n".join(row for row in info.splitlines() if row.startswith("lock:"))):
                    if _conflicts(line.kind, wanted) and inode in (None, line.inode):
                        found.setdefault(pid, line)
        return found

    def _listed(self, pid: int, inode: int | None, wanted: str) -> LockLine | None:
        """The held lock under which the waiter is listed; else any on the same file."""
        for held, waiter in self._waiting():
            if waiter.pid == pid and inode in (None, held.inode):
                return held
        lines = (line for line in self._all() if not line.waits)
        return next((line for line in lines if inode == line.inode and _conflicts(line.kind, wanted)), None)


def file_locks(found: Iterable[tuple[int, Holding]]) -> tuple[FileLock, ...]:
    """One entry for each lock: its first living holder, else the pid that took it; with all who wait."""
    waiters: dict[tuple[str, str], list[int]] = {}
    holdings: dict[tuple[str, str], Holding] = {}
    for pid, holding in found:
        key = (holding.path, holding.kind)
        waiting = waiters.setdefault(key, [])
        if pid not in waiting:
            waiting.append(pid)
        holdings.setdefault(key, holding)
    return tuple(_entry(holding, tuple(waiters[key])) for key, holding in holdings.items())


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
    match = _INODE.search(proc.maybe(f"/proc/{pid}/fdinfo/{fd}"))
    return int(match[1]) if match else None
