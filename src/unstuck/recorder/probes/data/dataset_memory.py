"""Tensors and arrays that a dataset holds: their names, the memory they lie in, and its bytes as they are now.

Found through its own dictionary and those of what it holds, lists, tuples and dicts; of long lists only what the batch
was drawn from. Nothing of the user's is run, no operation of torch is used, and nothing is kept.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from _weakref import ref
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from ... import objects
from ..object_walk import ATOMS, ObjectWalk, key_text

MOST_OBJECTS, MOST_SECONDS, DEPTH = 6000, 0.004, 6  # of one walk through a dataset
LONG = 256  # elements; longer lists are looked into at the drawn places only
MOST_PLACES = 4096  # drawn, that are looked at
MOST_PARTS = 4096  # of a ConcatDataset
NAME = 40  # letters
NEAREST = 64  # known ones that begin before a part, in which it is looked for
WHOLE = 1 << 16  # bytes of one tensor that are read; of more, as much in so many pieces spread over it:
PIECES = 16
MOST_MAPPINGS = 20_000  # of this process, that are looked through
_CODES = {
    "float32": "f", "float64": "d", "float16": "e", "int64": "q", "int32": "i", "int16": "h", "int8": "b",
    "uint8": "B", "bool": "?",
}  # fmt: skip


class Extent:
    """Where a tensor or array lies in main memory: its first byte, and the byte after its last."""

    __slots__ = ("begin", "end", "thing")

    def __init__(self, thing: Any, begin: int, end: int) -> None:
        self.thing, self.begin, self.end = thing, begin, end


Within = tuple[str, Extent, int]  # what of the dataset's a part lies in: its name, itself, and the address there


def extent(thing: Any) -> Extent | None:
    """Of a plain tensor, or of an array by the slots of numpy's own type; None for anything else, and on a device."""
    torch = sys.modules["torch"]
    kind = type(thing)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return _of_tensor(thing, torch)
    array = getattr(sys.modules.get("numpy"), "ndarray", None)
    return _of_array(thing, array) if array is not None and issubclass(kind, array) else None


def _of_tensor(tensor: Any, torch: Any) -> Extent | None:
    if tensor.layout is not torch.strided or not tensor.is_cpu:
        return None
    begin = tensor.data_ptr()
    if not begin:  # it has no elements, is a fake, or has given its memory back
        return None
    size = tensor.element_size()
    if tensor.is_contiguous():
        end = begin + tensor.numel() * size
    else:
        last = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True))
        end = begin + (last + 1) * size
    return Extent(tensor, begin, end) if end > begin else None


def _of_array(array: Any, kind: Any) -> Extent | None:
    size = kind.itemsize.__get__(array)
    shape, strides = kind.shape.__get__(array), kind.strides.__get__(array)
    if not kind.size.__get__(array) or kind.dtype.__get__(array).hasobject:
        return None
    first = kind.__array_interface__.__get__(array)["data"][0]
    moves = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    begin = first + sum(move for move in moves if move < 0)
    return Extent(array, begin, first + sum(move for move in moves if move > 0) + size)


# --- bytes ---------------------------------------------------------------------------------------------------------


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


def base_of(tensor: Any) -> Any:
    """What a plain tensor is a view of, if that is larger; else None."""
    base = tensor._base if is_tensor(tensor) else None
    return base if base is not None and base.numel() > tensor.numel() else None


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
    if code is None:
        return None
    size = struct.calcsize("=" + code)
    starts = range(0, min(len(before), len(after)) - size + 1, size)
    first = next((start for start in starts if before[start : start + size] != after[start : start + size]), None)
    if first is None:
        return None
    return struct.unpack_from("=" + code, before, first)[0], struct.unpack_from("=" + code, after, first)[0]


# --- what a dataset holds ------------------------------------------------------------------------------------------


def held(dataset: Any, places: set[int]) -> tuple[list[tuple[str, Extent]], set[int]]:
    """Each tensor and array with its name, as far as time and number allow, and the id of all that was met.
    `places`: where in a long list to look; those of what a Subset or a ConcatDataset holds are added as it is met."""

    holding: list[tuple[str, Extent]] = []

    def inside(thing: Any) -> Iterator[tuple[str, Any]]:
        return iter(()) if holding and holding[-1][1].thing is thing else _inside(thing, places)

    walk = ObjectWalk(inside, MOST_OBJECTS, DEPTH, MOST_SECONDS)
    for name, thing in walk.over([("", dataset)]):
        lies = extent(thing)
        if lies is not None:
            holding.append((name, lies))
    return holding, walk.seen


def _inside(thing: Any, places: set[int]) -> Iterator[tuple[str, Any]]:
    kind = type(thing)
    if issubclass(kind, (list, tuple)):
        base = list if issubclass(kind, list) else tuple
        count = base.__len__(thing)
        if count > LONG and id(type(base.__getitem__(thing, 0))) in ATOMS:
            return
        for place in range(count) if count <= LONG else sorted(p for p in places if 0 <= p < count):
            yield f"[{place}]", base.__getitem__(thing, place)
    elif issubclass(kind, dict):
        yield from _in_dict(thing, places)
    else:
        own = objects.instance_dict(thing) or {}
        _draw_through(own, places)
        for key, value in objects.some_of(own.items(), LONG):
            if type(key) is str:
                yield f".{key[:NAME]}", value


def _in_dict(thing: Any, places: set[int]) -> Iterator[tuple[str, Any]]:
    if dict.__len__(thing) <= LONG:
        for key, value in objects.some_of(dict.items(thing), LONG):
            yield f"[{key_text(key)}]", value
    elif type(next(dict.__iter__(thing))) is int:  # keys of the user's might be asked whether they are equal
        for place in sorted(places):
            if dict.__contains__(thing, place):
                yield f"[{place}]", dict.__getitem__(thing, place)


def _draw_through(own: dict[str, Any], places: set[int]) -> None:
    """What a Subset's indices and a ConcatDataset's parts make of the drawn places."""
    indices, sizes = own.get("indices"), own.get("cumulative_sizes")
    drawn: list[Any] = []
    if type(indices) is list and "dataset" in own:
        drawn = [indices[place] for place in places if 0 <= place < len(indices)]
    elif type(sizes) is list and "datasets" in own and len(sizes) <= MOST_PARTS and all(type(s) is int for s in sizes):
        begins = [0, *sizes]
        drawn = [place - begins[bisect_right(sizes, place)] for place in places if place >= 0]
    places.update([each for each in drawn if type(each) is int][: max(0, MOST_PLACES - len(places))])


class KnownExtents:
    """Those that earlier looks at a dataset have found. Each may have gone since, or lie elsewhere."""

    def __init__(self) -> None:
        self._all: list[tuple[int, int, str, Callable[[], Any]]] = []

    def remember(self, holding: list[tuple[str, Extent]]) -> None:
        known = {each[:2] for each in self._all}
        new = [(name, own) for name, own in holding if (own.begin, own.end) not in known]
        kept = self._all[: max(0, MOST_OBJECTS - len(new))]
        self._all = sorted([*kept, *((own.begin, own.end, name, ref(own.thing)) for name, own in new)], key=_begin)

    def around(self, part: Extent) -> Within | None:
        """The smallest of the nearest that is still where it was, and that the part lies in."""
        number = bisect_right(self._all, part.begin, key=_begin)
        around: list[Within] = []
        for begin, end, name, thing in self._all[max(0, number - NEAREST) : number]:
            own = extent(thing()) if part.end <= end else None
            if own is not None and (own.begin, own.end) == (begin, end):
                around.append((name, own, part.begin))
        return min(around, key=lambda within: within[1].end - within[1].begin, default=None)


def _begin(known: tuple[int, int, str, Any]) -> int:
    return known[0]


class SharedMemory:
    """What a dataset holds in memory that other processes map too: workers hand over tensors that lie in it as they
    are, and here these have another address."""

    def __init__(self, holding: list[tuple[str, Extent]]) -> None:
        shared = [(name, own) for name, own in holding if _is_shared(own)]
        self._mappings = _shared_mappings() if shared else []
        self._held: dict[str, list[tuple[int, str, Extent]]] = {}  # by file: where in it each lies
        for name, own in shared:
            there = self._in_file(own.begin)
            if there is not None:
                self._held.setdefault(there[0], []).append((there[1], name, own))

    def find(self, batch: Extent) -> Within | None:
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
            for line in islice(maps, MOST_MAPPINGS):
                span, access, offset, device, inode = line.split(None, 5)[:5]
                if access[3] == "s" and inode != "0":
                    begin, _, end = span.partition("-")
                    found.append((int(begin, 16), int(end, 16), f"{device} {inode}", int(offset, 16)))
    except OSError:  # not Linux
        pass
    return found
