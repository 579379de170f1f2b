"""Bytes of a tensor or array as they are now, read from memory without an operation of torch, and what changed."""

from __future__ import annotations

import ctypes
import struct
import sys
from bisect import bisect_right
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .dataset_tensors import Extent

WHOLE = 1 << 16
"""Bytes of one tensor that are read; of more, as much in so many pieces spread over it."""
PIECES = 16
MAPPINGS = 20_000
"""Of this process, that are looked through."""
_CODES = {
    "float32": "f", "float64": "d", "float16": "e", "int64": "q", "int32": "i", "int16": "h", "int8": "b",
    "uint8": "B", "bool": "?",
}  # fmt: skip


def read(lies: Extent, whole: int = WHOLE) -> bytes:
    """All of it, or as much as `whole` in pieces."""
    size = lies.end - lies.begin
    if size <= whole:
        return ctypes.string_at(lies.begin, size)
    piece = whole // PIECES // 8 * 8
    gap = (size - piece) // (PIECES - 1) // 8 * 8
    return b"".join(ctypes.string_at(lies.begin + n * gap, piece) for n in range(PIECES))


def version(thing: Any) -> int | None:
    """How often torch wrote to it, or to what it is a view of; None for arrays and for tensors of inference mode."""
    return None if not is_tensor(thing) or thing.is_inference() else int(thing._version)


def is_tensor(thing: Any) -> bool:
    """A plain tensor, by its type alone; what else has an extent is an array, perhaps of a class of the user's."""
    torch = sys.modules["torch"]
    return type(thing) is torch.Tensor or type(thing) is torch.nn.Parameter


def code_of(thing: Any) -> str | None:
    """The type of its elements as `struct` calls it; None for others."""
    kind = thing.dtype if is_tensor(thing) else sys.modules["numpy"].ndarray.dtype.__get__(thing)
    return _CODES.get(str(kind).rpartition(".")[2])


def numbers(lies: Extent, raw: bytes) -> list[Any] | None:
    """What the bytes of a tensor or array mean."""
    code = code_of(lies.thing)
    return None if code is None else list(struct.unpack(f"={len(raw) // struct.calcsize('=' + code)}{code}", raw))


def first_change(code: str | None, before: bytes, after: bytes) -> tuple[Any, Any] | None:
    """The first number that changed: what it was, and what it is now."""
    same, other = 0, min(len(before), len(after))
    if code is None or before[:other] == after[:other]:
        return None
    while same < other:  # all before `same` is alike, and something is not up to `other`
        middle = (same + other) // 2
        if before[: middle + 1] == after[: middle + 1]:
            same = middle + 1
        else:
            other = middle
    first = same - same % struct.calcsize("=" + code)
    return struct.unpack_from("=" + code, before, first)[0], struct.unpack_from("=" + code, after, first)[0]


class SharedMemory:
    """What a dataset holds in memory that other processes map too: workers hand over tensors that lie in it as they
    are, and here these have another address."""

    def __init__(self, holding: list[tuple[str, Extent]]) -> None:
        shared = [(name, own) for name, own in holding if _is_shared(own)]
        self._mappings = _shared_mappings() if shared else []
        self._held: dict[str, list[tuple[int, str, Extent]]] = {}
        """By file: where in it each lies."""
        for name, own in shared:
            there = self._in_file(own.begin)
            if there is not None:
                self._held.setdefault(there[0], []).append((there[1], name, own))

    def find(self, batch: Extent) -> tuple[str, Extent, int] | None:
        """What of it the batch lies in, and at which address of this process there."""
        there = self._in_file(batch.begin) if self._held and _is_shared(batch) else None
        if there is None:
            return None
        for begin, name, own in self._held.get(there[0], ()):
            place = there[1] - begin
            if place >= 0 and place + batch.end - batch.begin <= own.end - own.begin:
                return name, own, own.begin + place
        return None

    def _in_file(self, address: int) -> tuple[str, int] | None:
        """The file that is mapped at an address, and where in that file it is: the same in every mapping."""
        number = bisect_right(self._mappings, address, key=lambda mapping: mapping[0]) - 1
        if number < 0:
            return None
        begin, end, file, offset = self._mappings[number]
        return (file, offset + address - begin) if address < end else None


def _is_shared(lies: Extent) -> bool:
    return type(lies.thing) is sys.modules["torch"].Tensor and bool(lies.thing.is_shared())


def _shared_mappings() -> list[tuple[int, int, str, int]]:
    """First and last address, device and inode, place in that file; in the order of the addresses."""
    found = []
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in islice(maps, MAPPINGS):
                span, access, offset, device, inode = line.split(None, 5)[:5]
                if access[3] == "s" and inode != "0":
                    begin, _, end = span.partition("-")
                    found.append((int(begin, 16), int(end, 16), f"{device} {inode}", int(offset, 16)))
    except OSError:  # not Linux
        pass
    return found
