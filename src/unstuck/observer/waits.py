"""Turns the system call a thread is blocked in into a `Wait`: for what, on which descriptor, for whom."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from unstuck.model import Frame, Wait, WaitKind

from . import locks, proc
from .descriptors import Access, Descriptors, Ends
from .locks import Holding, Locks, Maps
from .sockets import Sockets
from .syscalls import POLLS, Call, has_limit, watched
from .threads import ThreadReading
from .tree import Member

_ON_DESCRIPTOR: dict[str, Access] = {
    **dict.fromkeys(("read", "readv", "pread64", "preadv", "preadv2", "getdents64", "accept", "accept4"), "read"),
    **dict.fromkeys(("recvfrom", "recvmsg", "recvmmsg", "close", "fstat", "ioctl", "splice"), "read"),
    **dict.fromkeys(("write", "writev", "pwrite64", "pwritev", "pwritev2", "connect", "shutdown"), "write"),
    **dict.fromkeys(("sendto", "sendmsg", "sendmmsg", "sendfile", "fsync", "fdatasync", "syncfs"), "write"),
    **dict.fromkeys(("sync_file_range", "ftruncate", "fallocate"), "write"),
}
_PATH_ARGUMENT = {
    **dict.fromkeys(("open", "stat", "lstat", "access", "unlink", "rename", "mkdir", "statfs"), 0),
    **dict.fromkeys(("openat", "openat2", "newfstatat", "statx", "faccessat", "faccessat2", "readlinkat"), 1),
    **dict.fromkeys(("unlinkat", "mkdirat", "renameat", "renameat2"), 1),
}
_SLEEPS = ("nanosleep", "clock_nanosleep")
_CONNECTION = "multiprocessing/connection.py"
_FROZEN = ("__refrigerator", "do_freezer_trap")
# Beginnings of wait channels, for a kernel that does not show the call, and for calls restarted after SIGCONT.
_CHANNELS: dict[tuple[WaitKind, str], tuple[str, ...]] = {
    ("sleep", "clock_nanosleep"): ("hrtimer_nanosleep", "do_nanosleep"),
    ("pipe-read", "read"): ("pipe_read", "anon_pipe_read"),
    ("pipe-write", "write"): ("pipe_write", "anon_pipe_write"),
    ("child", "wait4"): ("do_wait",),
    ("file-lock", "flock"): ("locks_lock_inode_wait", "flock_lock"),
    ("file-lock", "fcntl"): ("posix_lock", "fcntl_setlk"),
    ("terminal-read", "read"): ("n_tty_read",),
    ("socket", "recvfrom"): ("unix_stream_read", "unix_stream_data_wait", "sk_wait_data", "wait_woken", "__skb_wait"),
    ("socket", "accept"): ("inet_csk_accept",),
    ("poll", "poll"): ("do_poll", "do_sys_poll", "poll_schedule_timeout"),
    ("poll", "select"): ("do_select",),
    ("poll", "epoll_wait"): ("ep_poll", "do_epoll_wait"),
    ("unknown", "futex"): ("futex_",),
}


class Waits:
    """Explains the waits of one look; what it has to read for that it reads once."""

    def __init__(self, members: Iterable[Member], descriptors: Descriptors, sockets: Sockets) -> None:
        self._members = {member.pid: member for member in members}
        self._ends = Ends(self._members.values(), descriptors, sockets)
        self._maps = Maps(self._members)
        self._locks = Locks(descriptors)
        self.holdings: list[tuple[int, Holding]] = []  # each file lock met, with the pid that waits for it

    def explain(self, pid: int, thread: ThreadReading) -> Wait | None:
        """None for what is dead."""
        if thread.state in "ZX":
            return None
        call = thread.call
        if thread.state in "Tt" or thread.channel.startswith(_FROZEN):
            return Wait("stopped", call.name if call else "", thread.channel)
        if thread.state == "R" or (call is not None and call.name == "running"):
            return Wait("running")
        if call is None or call.name == "":
            wait = by_channel(thread.channel)
            if wait.kind == "file-lock" or (wait.kind == "unknown" and call is None and thread.tid == pid):
                wait = self._listed_lock(pid) or wait
        elif call.name == "restart_syscall":
            wait = self._restarted(pid, call, thread.channel)
        else:
            wait = self._by_call(pid, call)
        if thread.state == "D" and wait.kind in ("other", "unknown"):
            wait = replace(wait, kind="file")
        return replace(wait, channel=thread.channel) if thread.channel else wait

    def _by_call(self, pid: int, call: Call) -> Wait:
        lock_kind = locks.kind_waited_for(call)
        if lock_kind:
            fd = call.signed(0)
            return self._file_lock(pid, call.name, fd, self._locks.waited_for(pid, fd, lock_kind))
        match call.name:
            case "futex":
                return self._futex(pid, call)
            case name if name in POLLS:
                return self._poll(pid, call)
            case "wait4" | "waitid":
                return self._child(pid, call)
            case "vfork" | "clone" | "clone3":
                return Wait("child", call.name, timed=False, target="exec of a child", others=self._ends.children(pid))
            case name if name in _SLEEPS:
                return Wait("sleep", name, timed=True)
            case name if name in _ON_DESCRIPTOR:
                return self._descriptor(pid, call, _ON_DESCRIPTOR[name])
            case name if name in _PATH_ARGUMENT:
                path = proc.memory_text(pid, call.args[_PATH_ARGUMENT[name]])
                return Wait("file", name, timed=False, target=path)
            case "semop" | "semtimedop":
                return Wait("shared-lock", call.name, timed=call.name == "semtimedop" and call.args[3] != 0)
            case "rt_sigtimedwait":
                return Wait("other", call.name, timed=call.args[2] != 0)
        return Wait("other", call.name)

    def _descriptor(self, pid: int, call: Call, wants: Access) -> Wait:
        fd = call.signed(0)
        end = self._ends.of(pid, fd, wants)
        kind: WaitKind = "other" if call.name == "ioctl" and end.kind != "device" else end.kind
        timed = None if end.kind in ("socket", "device", "unknown") else False  # a socket may have SO_RCVTIMEO
        return replace(end, kind=kind, syscall=call.name, timed=timed, fd=fd)

    def _poll(self, pid: int, call: Call) -> Wait:
        timed = has_limit(call)
        polled = watched(pid, call)
        if polled is None:
            return Wait("poll", call.name, timed=timed)
        if not polled:
            return Wait("sleep" if timed else "other", call.name, timed=timed)
        ends = [self._ends.polled(pid, one.fd, one.wants) for one in polled]
        kinds = {end.kind for end in ends}
        targets = list(dict.fromkeys(end.target for end in ends))
        single = len(kinds) == 1 and not kinds & {"other", "unknown"}
        return Wait(
            ends[0].kind if single else "pipe-read" if kinds == {"child", "pipe-read"} else "poll",
            call.name,
            timed=timed,
            fd=polled[0].fd if len(polled) == 1 else None,
            target=", ".join(targets[:4]) + (f" and {len(targets) - 4} more" if len(targets) > 4 else ""),
            others=tuple(dict.fromkeys(pid for end in ends for pid in end.others)),
            also_self=any(end.also_self for end in ends),
        )

    def _child(self, pid: int, call: Call) -> Wait:
        which: int | None = call.signed(0)
        if call.name == "waitid":
            if which == 3:  # P_PIDFD
                end = self._ends.of(pid, call.signed(1), "read")
                return replace(end, kind="child", syscall=call.name, timed=False)
            which = call.signed(1) if which == 1 else None  # P_PID
        if which is not None and which > 0:
            return Wait("child", call.name, timed=False, target=f"process {which}", others=(which,))
        return Wait("child", call.name, timed=False, target="any child", others=self._ends.children(pid))

    def _file_lock(self, pid: int, syscall: str, fd: int | None, holding: Holding) -> Wait:
        self.holdings.append((pid, holding))
        others = tuple(holder for holder in holding.holders if holder != pid)
        own = pid in holding.holders
        return Wait("file-lock", syscall, timed=False, fd=fd, target=holding.path, others=others, also_self=own)

    def _listed_lock(self, pid: int) -> Wait | None:
        """From the kernel's list of locks, which everybody may read."""
        listed = self._locks.listed_for(pid)
        if listed is None:
            return None
        fd, holding = listed
        return self._file_lock(pid, "flock" if holding.kind == "FLOCK" else "fcntl", fd, holding)

    def _futex(self, pid: int, call: Call) -> Wait:
        if not locks.is_futex_wait(call):
            return Wait("lock", call.name)
        address, private = call.args[0], locks.is_private(call)
        shared = None if private else self._maps.shared_at(pid, address)
        value = locks.semaphore_value(pid, address, waited_for=True) if locks.looks_like_semaphore(call) else None
        wait = Wait("lock", call.name, timed=call.args[3] != 0, address=address, value=value)
        if shared is not None:
            others = tuple(other for other in self._maps.sharing(shared) if other != pid)
            return replace(wait, kind="shared-lock", target=shared.path, others=others)
        if not private and not self._maps.readable(pid):
            return replace(wait, kind="unknown")
        member = self._members.get(pid)
        if value is None or member is None or not member.forked:
            return wait
        return replace(wait, parent_value=locks.semaphore_value(member.ppid, address, waited_for=False))

    def _restarted(self, pid: int, call: Call, channel: str) -> Wait:
        """After SIGCONT the kernel shows "restart_syscall", with the arguments of the call it goes on with."""
        guess = by_channel(channel)
        if guess.syscall == "futex":
            return self._futex(pid, replace(call, name="futex"))
        if guess.syscall == "poll":
            return self._poll(pid, replace(call, name="poll"))
        return guess


def by_channel(channel: str) -> Wait:
    """The kind of wait, from the kernel function the thread sleeps in."""
    for (kind, syscall), beginnings in _CHANNELS.items():
        if channel.startswith(beginnings):
            return Wait(kind, syscall, timed=True if kind == "sleep" else None)
    return Wait("unknown")


def with_frames(wait: Wait | None, frames: tuple[Frame, ...]) -> Wait | None:
    """A pipe kept open by one child only looks like a process sentinel, and a Pipe of multiprocessing like any socket;
    the Python frames know better."""
    if wait is None or not frames:
        return wait
    if wait.kind == "socket" and (wait.others or wait.also_self) and frames[0].file.endswith(_CONNECTION):
        # multiprocessing sets no timeout on its sockets; both ends are in this tree.
        return replace(
            wait, kind="pipe-write" if _ON_DESCRIPTOR.get(wait.syscall) == "write" else "pipe-read", timed=False
        )
    if wait.kind != "child" or wait.syscall not in POLLS or not wait.target.startswith("pipe:"):
        return wait
    return wait if _waits_for_process(frames) else replace(wait, kind="pipe-read")


def _waits_for_process(frames: tuple[Frame, ...]) -> bool:
    in_connection = {frame.function.rpartition(".")[2] for frame in frames if frame.file.endswith(_CONNECTION)}
    joins = any(
        os.path.basename(frame.file).startswith("popen_") and frame.function.endswith(("wait", "poll"))
        for frame in frames
    )
    return joins or (bool(in_connection) and in_connection <= {"wait", "select"})
