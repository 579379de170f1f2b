"""What a descriptor that somebody waits on is, and who in the tree is at its other end."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from unstuck.model import WaitKind

from . import proc
from .fds import Access, Descriptors, is_device, is_terminal
from .sockets import Sockets
from .tree import Member

_PID_OF_PIDFD = re.compile(r"^Pid:\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class End:
    kind: WaitKind
    target: str = ""
    others: tuple[int, ...] = ()
    also_self: bool = False


class Ends:
    def __init__(self, members: Iterable[Member], descriptors: Descriptors, sockets: Sockets) -> None:
        self._parents = {member.pid: member.ppid for member in members}
        self._descriptors = descriptors
        self._sockets = sockets

    def of(self, pid: int, fd: int, wants: Access) -> End:
        """What `pid` waits for when it waits to read from, or write to, its descriptor `fd`."""
        target = self._descriptors.target(pid, fd)
        shown = "stdin" if fd == 0 and wants == "read" else target
        if target.startswith("pipe:"):
            return self._pipe("pipe-read" if wants == "read" else "pipe-write", pid, target, shown, wants)
        if target.startswith("socket:"):
            return self._socket(pid, target, shown)
        if is_terminal(target):
            return End("terminal-read" if wants == "read" else "file", shown)
        if is_device(target):
            return End("device", target)
        if target == "anon_inode:[pidfd]":
            child = _PID_OF_PIDFD.search(proc.maybe(f"/proc/{pid}/fdinfo/{fd}"))
            return End("child", f"process {child[1]}" if child else target, (int(child[1]),) if child else ())
        if target.startswith("/"):
            return self._file(pid, fd, target, shown, wants)
        return End("other" if target else "unknown", target)

    def polled(self, pid: int, fd: int, wants: Access) -> End:
        """The same, for a descriptor watched by poll: a pipe that a child alone keeps open tells of its end."""
        end = self.of(pid, fd, wants)
        if end.kind == "pipe-read" and fd != 0 and not end.also_self:
            child = self._sentinel_of(pid, end)
            if child is not None:
                return End("child", end.target, (child,))
        return end

    def children(self, pid: int) -> tuple[int, ...]:
        return tuple(child for child, parent in self._parents.items() if parent == pid)

    def _pipe(self, kind: WaitKind, pid: int, target: str, shown: str, wants: Access) -> End:
        holders = self._descriptors.ends(target, "write" if wants == "read" else "read")
        return End(kind, shown, tuple(other for other in holders if other != pid), pid in holders)

    def _socket(self, pid: int, target: str, shown: str) -> End:
        text, peer = self._sockets.describe(pid, target)
        holders = self._descriptors.having(peer) if peer else {}
        others = tuple(other for other in holders if other != pid)
        return End("socket", shown if shown == "stdin" else text, others, pid in holders)

    def _file(self, pid: int, fd: int, target: str, shown: str, wants: Access) -> End:
        if self._descriptors.is_fifo(pid, fd):
            return self._pipe("file", pid, target, shown, wants)
        remote = self._descriptors.remote(pid, fd)
        return End("file", f"{shown} ({remote})" if remote else shown)

    def _sentinel_of(self, pid: int, end: End) -> int | None:
        """The child, if a child (and its own children) alone keeps the write end, and not as its output."""
        tops = [other for other in end.others if self._parents.get(other) not in end.others]
        if len(tops) != 1 or not self._descends(tops[0], pid):
            return None
        fds = self._descriptors.ends(end.target, "write").get(tops[0], [])
        return tops[0] if fds and min(fds) > 2 else None

    def _descends(self, pid: int, ancestor: int) -> bool:
        parent = self._parents.get(pid)
        while parent is not None and parent != ancestor:
            parent = self._parents.get(parent)
        return parent == ancestor
