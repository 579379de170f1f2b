"""The system call a thread is blocked in, with its arguments, and the descriptors that a poll or select watches."""

from __future__ import annotations

import platform
import re
import struct
from dataclasses import dataclass

from . import proc
from .descriptors import Access

_NUMBERS = """
read 0 63, write 1 64, pread64 17 67, pwrite64 18 68, readv 19 65, writev 20 66, preadv 295 69, pwritev 296 70,
preadv2 327 286, pwritev2 328 287, sendfile 40 71, splice 275 76, copy_file_range 326 285,
openat 257 56, openat2 437 437, newfstatat 262 79, fstat 5 80, statx 332 291, faccessat 269 48, faccessat2 439 439,
readlinkat 267 78, unlinkat 263 35, mkdirat 258 34, renameat 264 38, renameat2 316 276, getdents64 217 61,
statfs 137 43, close 3 57, fsync 74 82, fdatasync 75 83, sync_file_range 277 84, syncfs 306 267, sync 162 81,
msync 26 227, ftruncate 77 46, fallocate 285 47, flock 73 32, fcntl 72 25, ioctl 16 29,
ppoll 271 73, pselect6 270 72, epoll_pwait 281 22, epoll_pwait2 441 441,
futex 202 98, futex_waitv 449 449, futex_wait 455 455, wait4 61 260, waitid 247 95,
nanosleep 35 101, clock_nanosleep 230 115, rt_sigsuspend 130 133, rt_sigtimedwait 128 137, restart_syscall 219 128,
connect 42 203, accept 43 202, accept4 288 242, sendto 44 206, recvfrom 45 207, sendmsg 46 211, recvmsg 47 212,
sendmmsg 307 269, recvmmsg 299 243, shutdown 48 210,
semop 65 193, semtimedop 220 192, msgsnd 69 189, msgrcv 70 188, mq_timedreceive 243 183,
io_getevents 208 4, io_uring_enter 426 426, mmap 9 222, munmap 11 215, madvise 28 233,
clone 56 220, clone3 435 435, vfork 58 -, exit 60 93, exit_group 231 94,
open 2 -, stat 4 -, lstat 6 -, access 21 -, unlink 87 -, rename 82 -, mkdir 83 -,
poll 7 -, select 23 -, epoll_wait 232 -, pause 34 -
"""  # calls a thread can block in: name, number on x86-64, number on aarch64 ("-": it has no such call)
_TABLES: dict[str, dict[int, str]] = {"x86_64": {}, "aarch64": {}}
for _row in _NUMBERS.split(","):
    _name, *_numbers = _row.split()
    for _table, _number in zip(_TABLES.values(), _numbers, strict=True):
        if _number != "-":
            _table[int(_number)] = _name

POLLS = ("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2")
_READABLE, _WRITABLE = 0x0001, 0x0004
_MOST_WATCHED = 256  # descriptors of one poll that are looked at


@dataclass(frozen=True, slots=True)
class Call:
    """A system call a thread is in. `name` is "running" on a processor, "" outside any call or if unreadable."""

    name: str
    args: tuple[int, ...] = (0, 0, 0, 0, 0, 0)
    stack: int = 0  # the thread's stack pointer
    number: int = -1

    def signed(self, index: int) -> int:
        """An argument as the C int it is (the register may hold either extension)."""
        low = self.args[index] & 0xFFFFFFFF
        return low - (1 << 32) if low >= 1 << 31 else low


def name_of(number: int, machine: str | None = None) -> str:
    return _TABLES.get(machine or platform.machine(), {}).get(number, f"syscall {number}")


def parse_call(line: str, machine: str | None = None) -> Call:
    """One line of /proc/PID/task/TID/syscall."""
    words = line.split()
    if not words:
        return Call("")
    if words[0] == "running":
        return Call("running")
    number = int(words[0])
    if number < 0 or len(words) < 9:
        return Call("", stack=int(words[1], 16) if len(words) > 1 else 0, number=number)
    args = tuple(int(word, 16) for word in words[1:7])
    return Call(name_of(number, machine), args, int(words[7], 16), number)


@dataclass(frozen=True, slots=True)
class Watched:
    fd: int
    wants: Access


def watched(pid: int, call: Call) -> tuple[Watched, ...] | None:
    """What a poll watches. None where that could not be read; empty for a plain timer: select() without descriptors."""
    if call.name in ("poll", "ppoll"):
        return _poll_array(pid, call.args[0], call.args[1])
    if call.name in ("select", "pselect6"):
        return _select_sets(pid, call)
    return epoll_targets(proc.maybe(f"/proc/{pid}/fdinfo/{call.args[0]}"))


def has_limit(call: Call) -> bool | None:
    """A poll has a timeout of its own."""
    if call.name in ("poll", "epoll_wait", "epoll_pwait"):
        return call.signed(2 if call.name == "poll" else 3) >= 0
    pointer = {"ppoll": 2, "select": 4, "pselect6": 4, "epoll_pwait2": 3}.get(call.name)
    return None if pointer is None else call.args[pointer] != 0


def parse_pollfds(data: bytes) -> tuple[Watched, ...]:
    return tuple(
        Watched(fd, "write" if events & _WRITABLE and not events & _READABLE else "read")
        for fd, events, _ in struct.iter_unpack("<iHH", data)
        if fd >= 0
    )


def epoll_targets(fdinfo: str) -> tuple[Watched, ...] | None:
    """The `tfd` lines of an epoll descriptor's fdinfo."""
    if not fdinfo:
        return None
    lines = re.findall(r"^tfd:\s+(\d+) events:\s+([0-9a-f]+)", fdinfo, re.MULTILINE)[:_MOST_WATCHED]
    return tuple(Watched(int(fd), "read" if int(mask, 16) & _READABLE else "write") for fd, mask in lines)


def _poll_array(pid: int, address: int, count: int) -> tuple[Watched, ...] | None:
    if count == 0:
        return ()
    data = proc.memory(pid, address, 8 * min(count, _MOST_WATCHED))
    return None if data is None else parse_pollfds(data)


def _select_sets(pid: int, call: Call) -> tuple[Watched, ...] | None:
    """The kernel writes results into the sets only at the end: while it waits they are as the caller wrote them."""
    count = min(call.args[0] & 0xFFFFFFFF, 1024)
    watches: list[Watched] = []
    sets: tuple[tuple[int, Access], ...] = ((call.args[1], "read"), (call.args[2], "write"))
    for address, wants in sets:
        if count and address:
            data = proc.memory(pid, address, (count + 63) // 64 * 8)
            if data is None:
                return None
            bits = int.from_bytes(data, "little")
            watches += [Watched(fd, wants) for fd in range(count) if bits >> fd & 1]
    return tuple(watches)
