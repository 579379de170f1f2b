"""Open descriptors of the tree: what each is, and who has the other end of a pipe or socket."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable
from typing import Literal

from unstuck.model import Wait, WaitKind

from . import proc
from .sockets import Sockets
from .tree import Member

Access = Literal["read", "write"]
DEVICES = ("/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/accel", "/dev/davinci")
_REMOTE = re.compile(r"^(nfs|cifs|smb|fuse|lustre|gpfs|ceph|9p|beegfs|afs|glusterfs|virtiofs|overlay\.remote)")
_PID_OF_PIDFD = re.compile(r"^Pid:\s+(\d+)", re.MULTILINE)
_MOUNT = re.compile(r"^mnt_id:\s+(\d+)", re.MULTILINE)


class Descriptors:
    """Read once a look, each process when it is first needed."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = tuple(pids)
        self._targets: dict[int, dict[int, str] | None] = {}
        self._mounts: dict[int, dict[int, tuple[str, str]]] = {}

    def of(self, pid: int) -> dict[int, str] | None:
        """Target of each descriptor; None where we may not look. Files are not touched."""
        if pid not in self._targets:
            try:
                fds = proc.numbers(f"/proc/{pid}/fd")
                self._targets[pid] = {fd: proc.link(f"/proc/{pid}/fd/{fd}") for fd in fds}
            except OSError:
                self._targets[pid] = None
        return self._targets[pid]

    def target(self, pid: int, fd: int) -> str:
        return (self.of(pid) or {}).get(fd, "")

    def having(self, target: str) -> dict[int, list[int]]:
        """Who in the tree has it open, with which descriptors."""
        fds = {pid: [fd for fd, name in (self.of(pid) or {}).items() if name == target] for pid in self._pids}
        return {pid: own for pid, own in fds.items() if own}

    def ends(self, target: str, access: Access) -> dict[int, list[int]]:
        """Who in the tree has that end of the pipe or FIFO open."""
        fds = {
            pid: [fd for fd in own if access in access_in(info(pid, fd))] for pid, own in self.having(target).items()
        }
        return {pid: own for pid, own in fds.items() if own}

    def is_fifo(self, pid: int, fd: int) -> bool:
        """A named pipe. Files of a network mount are not touched: stat could block as it blocks the target."""
        if not self.target(pid, fd).startswith("/") or self.remote(pid, fd):
            return False
        try:
            return stat.S_ISFIFO(os.stat(f"/proc/{pid}/fd/{fd}").st_mode)
        except OSError:
            return False

    def remote(self, pid: int, fd: int) -> str:
        """Type and source of the network mount a descriptor lies on, as "nfs4 server:/export"; else empty."""
        mount = _MOUNT.search(info(pid, fd))
        if mount is None:
            return ""
        if pid not in self._mounts:
            self._mounts[pid] = parse_mounts(proc.maybe(f"/proc/{pid}/mountinfo", 1 << 22))
        kind, source = self._mounts[pid].get(int(mount[1]), ("", ""))
        return f"{kind} {source}".strip() if _REMOTE.match(kind) else ""


def info(pid: int, fd: int) -> str:
    """The kernel's own text about a descriptor: its flags, mount, locks."""
    return proc.maybe(f"/proc/{pid}/fdinfo/{fd}")


def access_in(fdinfo: str) -> frozenset[Access]:
    """From the `flags` line: what the descriptor may do."""
    for line in fdinfo.splitlines():
        if line.startswith("flags:"):
            mode = int(line.split()[1], 8) & os.O_ACCMODE
            one: dict[int, frozenset[Access]] = {0: frozenset({"read"}), 1: frozenset({"write"})}
            return one.get(mode, frozenset({"read", "write"}))
    return frozenset()


def parse_mounts(text: str) -> dict[int, tuple[str, str]]:
    """Mount id to file-system type and source, from `mountinfo`."""
    mounts: dict[int, tuple[str, str]] = {}
    for line in text.splitlines():
        left, dash, right = line.partition(" - ")
        words = right.split()
        if dash and len(words) >= 2:
            mounts[int(left.split()[0])] = (words[0], words[1])
    return mounts


def is_device(target: str) -> bool:
    return target.startswith(DEVICES)


def is_terminal(target: str) -> bool:
    return target.startswith(("/dev/pts/", "/dev/tty", "/dev/console", "/dev/hvc"))


def stdin_kind(pid: int) -> str:
    """What standard input of a process is: terminal, pipe, file, null, socket, closed, or "" where unknown."""
    try:
        target = os.readlink(f"/proc/{pid}/fd/0")
    except FileNotFoundError:
        return "closed" if os.path.exists(f"/proc/{pid}/fd") else ""
    except OSError:
        return ""
    if target.startswith(("pipe:", "socket:")):
        return target.partition(":")[0]
    if target == "/dev/null":
        return "null"
    return "terminal" if is_terminal(target) else "file"


class Ends:
    """The other ends of descriptors in the tree: what somebody waits on, and who has its other end."""

    def __init__(self, members: Iterable[Member], descriptors: Descriptors, sockets: Sockets) -> None:
        self._parents = {member.pid: member.ppid for member in members}
        self._descriptors = descriptors
        self._sockets = sockets

    def of(self, pid: int, fd: int, wants: Access) -> Wait:
        """What `pid` waits for when it waits to read from, or write to, its descriptor `fd`."""
        target = self._descriptors.target(pid, fd)
        shown = "stdin" if fd == 0 and wants == "read" else target
        if target.startswith("pipe:"):
            return self._pipe("pipe-read" if wants == "read" else "pipe-write", pid, target, shown, wants)
        if target.startswith("socket:"):
            text, peer = self._sockets.describe(pid, target)
            holders = self._descriptors.having(peer) if peer else {}
            return _end("socket", pid, shown if shown == "stdin" else text, holders)
        if is_terminal(target):
            return Wait("terminal-read" if wants == "read" else "file", target=shown)
        if is_device(target):
            return Wait("device", target=target)
        if target == "anon_inode:[pidfd]":
            child = _PID_OF_PIDFD.search(info(pid, fd))
            if child is None:
                return Wait("child", target=target)
            return Wait("child", target=f"process {child[1]}", others=(int(child[1]),))
        if target.startswith("/"):
            if self._descriptors.is_fifo(pid, fd):
                return self._pipe("file", pid, target, shown, wants)
            remote = self._descriptors.remote(pid, fd)
            return Wait("file", target=f"{shown} ({remote})" if remote else shown)
        return Wait("other" if target else "unknown", target=target)

    def polled(self, pid: int, fd: int, wants: Access) -> Wait:
        """The same, for a descriptor watched by poll: a pipe that only a child keeps open shows the child's end."""
        end = self.of(pid, fd, wants)
        if end.kind == "pipe-read" and fd != 0 and not end.also_self:
            child = self._sentinel_of(pid, end)
            if child is not None:
                return Wait("child", target=end.target, others=(child,))
        return end

    def children(self, pid: int) -> tuple[int, ...]:
        return tuple(child for child, parent in self._parents.items() if parent == pid)

    def _pipe(self, kind: WaitKind, pid: int, target: str, shown: str, wants: Access) -> Wait:
        return _end(kind, pid, shown, self._descriptors.ends(target, "write" if wants == "read" else "read"))

    def _sentinel_of(self, pid: int, end: Wait) -> int | None:
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


def _end(kind: WaitKind, pid: int, shown: str, holders: Collection[int]) -> Wait:
    others = tuple(other for other in holders if other != pid)
    return Wait(kind, target=shown, others=others, also_self=pid in holders)
