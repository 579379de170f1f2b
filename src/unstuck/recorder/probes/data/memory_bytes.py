"""Bytes of a tensor or array as they are now, read from memory without an operation of torch, and what changed."""

from __future__ import annotations

import ctypes
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .dataset_tensors import Extent

WHOLE = 1 << 16
"""Bytes of one tensor that are read; of more, as much in so many pieces spread over it."""
PIECES = 16
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


def values(lies: Extent, before: bytes, after: bytes) -> list[object] | None:
    """The first number that changed: what it was, and what it is now."""
    thing = lies.thing
    kind = thing.dtype if is_tensor(thing) else sys.modules["numpy"].ndarray.dtype.__get__(thing)
    code = _CODES.get(str(kind).rpartition(".")[2])
    if code is None:
        return None
    size = struct.calcsize("=" + code)
    place = next((n for n in range(min(len(before), len(after))) if before[n] != after[n]), None)
    if place is None:
        return None
    first = place - place % size
    return [struct.unpack_from("=" + code, data, first)[0] for data in (before, after)]


def in_file(address: int) -> tuple[str, int] | None:
    """Device and inode of the shared mapping an address lies in, and where in that file: the same in every mapping."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            span, access, offset, device, inode = line.split(None, 5)[:5]
            begin, _, end = span.partition("-")
            if int(begin, 16) <= address < int(end, 16):
                if access[3] != "s" or inode == "0":
                    return None
                return f"{device} {inode}", int(offset, 16) + address - int(begin, 16)
    return None


def same_memory(batch: Extent, own: Extent) -> int | None:
    """Where in `own` the batch begins, if both are mappings of one piece of shared memory: workers hand over tensors
    that lie in it as they are."""
    if sys.platform != "linux" or not all(_is_shared(each) for each in (batch, own)):
        return None
    there, here = in_file(batch.begin), in_file(own.begin)
    if there is None or here is None or there[0] != here[0]:
        return None
    return there[1] - here[1] if here[1] <= there[1] < here[1] + own.end - own.begin else None


def _is_shared(lies: Extent) -> bool:
    return type(lies.thing) is sys.modules["torch"].Tensor and bool(lies.thing.is_shared())
