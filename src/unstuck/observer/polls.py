"""Which descriptors a poll, select or epoll call watches, read from its arguments in the target's memory."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from . import proc
from .fds import Access
from .mem import Memory
from .syscalls import Call

_READABLE, _WRITABLE = 0x0001, 0x0004
_MOST = 256
POLLS = ("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2")


@dataclass(frozen=True, slots=True)
class Watched:
    fd: int
    wants: Access


def watched(pid: int, call: Call) -> tuple[Watched, ...] | None:
    """None where the list could not be read; empty for a plain timer such as select() without descriptors."""
    if call.name in ("poll", "ppoll"):
        return _poll_array(pid, call.args[0], call.args[1])
    if call.name in ("select", "pselect6"):
        return _select_sets(pid, call)
    return epoll_targets(proc.maybe(f"/proc/{pid}/fdinfo/{call.args[0]}"))


def has_limit(call: Call) -> bool | None:
    """The call has a timeout of its own."""
    if call.name == "poll":
        return call.signed(2) >= 0
    if call.name == "ppoll":
        return call.args[2] != 0
    if call.name in ("select", "pselect6"):
        return call.args[4] != 0
    if call.name in ("epoll_wait", "epoll_pwait"):
        return call.signed(3) >= 0
    return call.args[3] != 0 if call.name == "epoll_pwait2" else None


def parse_pollfds(data: bytes) -> tuple[Watched, ...]:
    found = []
    for fd, events, _ in struct.iter_unpack("<iHH", data):
        if fd >= 0:
            only_writable = events & _WRITABLE and not events & _READABLE
            found.append(Watched(fd, "write" if only_writable else "read"))
    return tuple(found)


def epoll_targets(fdinfo: str) -> tuple[Watched, ...] | None:
    """The `tfd` lines of an epoll descriptor's fdinfo."""
    lines = re.findall(r"^tfd:\s+(\d+) events:\s+([0-9a-f]+)", fdinfo, re.MULTILINE)
    if not fdinfo:
        return None
    return tuple(Watched(int(fd), "read" if int(mask, 16) & _READABLE else "write") for fd, mask in lines[:_MOST])


def _poll_array(pid: int, address: int, count: int) -> tuple[Watched, ...] | None:
    if count == 0:
        return ()
    data = Memory(pid).read(address, 8 * min(count, _MOST))
    return None if data is None else parse_pollfds(data)


def _select_sets(pid: int, call: Call) -> tuple[Watched, ...] | None:
    """The kernel writes results into the same sets only at the end, so while it waits they are as they were given."""
    count = call.args[0] & 0xFFFFFFFF
    if count == 0:
        return ()
    found: list[Watched] = []
    wanted: tuple[tuple[int, Access], ...] = ((call.args[1], "read"), (call.args[2], "write"))
    for address, wants in wanted:
        if address:
            size = (min(count, 1024) + 63) // 64 * 8
            data = Memory(pid).read(address, size)
            if data is None:
                return None
            bits = int.from_bytes(data, "little")
            found += [Watched(fd, wants) for fd in range(min(count, 1024)) if bits >> fd & 1]
    return tuple(found)
