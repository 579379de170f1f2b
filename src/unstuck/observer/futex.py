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
_SHARED = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S{3}s [0-9a-f]+ (\S+) (\d+) *(.*)$", re.MULTILINE)
_OWN_STACK = 1 << 16


@dataclass(frozen=True, slots=True)
class SharedMapping:
    start: int
    end: int
    file: tuple[str, str]
    """Device and inode: the same in every process that maps it."""
    path: str


class Maps:
    """Shared mappings of the tree, read once a look when first asked for: a torch process has thousands in all."""

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
