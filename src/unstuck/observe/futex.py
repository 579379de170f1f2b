"""What a futex address is: private or shared memory, who else maps it, and the semaphore's value there."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from . import proc
from .mem import Memory
from .syscalls import Call

PRIVATE_FLAG = 0x80
_COMMAND_MASK = 0x7F
_WAIT, _WAIT_BITSET = 0, 9
_LINE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) (\S+) (\d+)\s*(.*)$")
_OWN_STACK = 1 << 16


@dataclass(frozen=True, slots=True)
class Mapping:
    start: int
    shared: bool
    file: tuple[str, int]
    """Device and inode: the same in every process that maps it."""
    path: str
    offset: int


class Maps:
    """Memory maps of the tree, each read once a look when first asked for: a torch process has thousands."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = tuple(pids)
        self._texts: dict[int, str] = {}

    def at(self, pid: int, address: int) -> Mapping | None:
        return find_mapping(self._text(pid), address)

    def sharing(self, mapping: Mapping) -> tuple[int, ...]:
        device, inode = mapping.file
        mark = f" {device} {inode} "
        return tuple(
            pid
            for pid in self._pids
            if any(mark in line and line.split(" ", 2)[1].endswith("s") for line in self._text(pid).splitlines())
        )

    def _text(self, pid: int) -> str:
        if pid not in self._texts:
            self._texts[pid] = proc.maybe(f"/proc/{pid}/maps", 1 << 24)
        return self._texts[pid]


def find_mapping(maps: str, address: int) -> Mapping | None:
    for line in maps.splitlines():
        match = _LINE.match(line)
        if match and int(match[1], 16) <= address < int(match[2], 16):
            return Mapping(
                start=int(match[1], 16),
                shared=match[3].endswith("s"),
                file=(match[5], int(match[6])),
                path=match[7],
                offset=int(match[4], 16),
            )
    return None


def is_wait(call: Call) -> bool:
    return call.name == "futex" and call.args[1] & _COMMAND_MASK in (_WAIT, _WAIT_BITSET)


def is_private(call: Call) -> bool | None:
    """By the flag in the call; None: the flag is not set, and only the mapping can say."""
    return True if call.args[1] & PRIVATE_FLAG else None


def looks_like_semaphore(call: Call) -> bool:
    """glibc waits for a semaphore with WAIT_BITSET while the value is 0; PyMutex parks on the waiter's own stack."""
    on_own_stack = 0 <= call.args[0] - call.stack < _OWN_STACK
    return call.args[1] & _COMMAND_MASK == _WAIT_BITSET and call.args[2] & 0xFFFFFFFF == 0 and not on_own_stack


def semaphore_value(pid: int, address: int, *, waited_for: bool) -> int | None:
    """Value of a glibc sem_t: the low half of a 64-bit word whose high half counts the waiters."""
    data = Memory(pid).read(address, 8)
    if data is None:
        return None
    value, waiters = struct.unpack("<II", data)
    if waited_for and not 1 <= waiters < 1 << 16:  # nobody counted in: a condition variable, not a semaphore
        return None
    return int(value) if value < 1 << 31 else None
