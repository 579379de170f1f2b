"""Tensors and arrays that a dataset holds, with the names they are held by and the memory they lie in.

Its own dictionary and those of what it holds, lists, tuples and dicts; of long lists only what the batch was drawn
from. Nothing of the user's is run, and nothing is kept.
"""

from __future__ import annotations

import sys
from _weakref import ref
from bisect import bisect_right
from collections import deque
from time import thread_time

from ... import objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

OBJECTS = 6000
SECONDS = 0.004
DEPTH = 6
LONG = 256
"""Lists with more elements are looked into at the drawn places only."""
PLACES = 4096
"""Drawn places that are looked at."""
PARTS = 4096
"""Of a ConcatDataset."""
KEY = 40
"""Characters of a name."""
NEAREST = 4
"""Known ones that begin before a part, in which it is looked for."""


class Extent:
    """Where a tensor or array lies in main memory: its first byte, and the byte after its last."""

    __slots__ = ("begin", "end", "thing")

    def __init__(self, thing: Any, begin: int, end: int) -> None:
        self.thing, self.begin, self.end = thing, begin, end


class KnownExtents:
    """Those that earlier looks at a dataset have found. Each may have gone since, or lie elsewhere."""

    def __init__(self) -> None:
        self._all: list[tuple[int, int, str, Callable[[], Any]]] = []

    def remember(self, holding: list[tuple[str, Extent]]) -> None:
        known = {each[:2] for each in self._all}
        new = [(name, own) for name, own in holding if (own.begin, own.end) not in known]
        kept = self._all[: max(0, OBJECTS - len(new))]
        self._all = sorted([*kept, *((own.begin, own.end, name, ref(own.thing)) for name, own in new)], key=_begin)

    def around(self, part: Extent) -> tuple[str, Extent] | None:
        """The smallest of the nearest that is still where it was, and that the part lies in."""
        number = bisect_right(self._all, part.begin, key=_begin)
        found = []
        for begin, end, name, thing in self._all[max(0, number - NEAREST) : number]:
            own = extent(thing()) if part.end <= end else None
            if own is not None and (own.begin, own.end) == (begin, end):
                found.append((name, own))
        return min(found, key=lambda each: each[1].end - each[1].begin, default=None)


def _begin(known: tuple[int, int, str, Any]) -> int:
    return known[0]


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


def held(dataset: Any, places: set[int], owners: set[int]) -> Iterator[tuple[str, Extent]]:
    """Each tensor and array with its name, as far as time and number allow; `owners` gets the id of all that was met.
    `places`: where in a long list to look; those of what a Subset or a ConcatDataset holds are added as it is met."""
    waiting: deque[tuple[str, Any, int]] = deque([("", dataset, 0)])
    until, number = thread_time() + SECONDS, 0
    while waiting:
        name, thing, depth = waiting.popleft()
        if id(thing) in owners:
            continue
        owners.add(id(thing))
        number += 1
        if number > OBJECTS or (number & 7 == 0 and thread_time() > until):
            return
        lies = extent(thing)
        if lies is not None:
            yield name, lies
        elif depth < DEPTH and len(waiting) < OBJECTS:
            below = (each for each in _beneath(thing, places) if id(type(each[1])) not in _ATOMS)
            waiting.extend((name + under, value, depth + 1) for under, value in below)


def _beneath(thing: Any, places: set[int]) -> Iterator[tuple[str, Any]]:
    kind = type(thing)
    if issubclass(kind, (list, tuple)):
        base = list if issubclass(kind, list) else tuple
        count = base.__len__(thing)
        if count > LONG and id(type(base.__getitem__(thing, 0))) in _ATOMS:
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
                yield f".{key[:KEY]}", value


def _in_dict(thing: Any, places: set[int]) -> Iterator[tuple[str, Any]]:
    if dict.__len__(thing) <= LONG:
        for key, value in objects.some_of(dict.items(thing), LONG):
            yield _key(key), value
    elif type(next(dict.__iter__(thing))) is int:  # keys of the user's might be asked whether they are equal
        for place in sorted(places):
            if dict.__contains__(thing, place):
                yield f"[{place}]", dict.__getitem__(thing, place)


def _key(key: Any) -> str:
    if type(key) is str:
        return f"[{key[:KEY]!r}]"
    return f"[{key}]" if type(key) is int and key.bit_length() < 64 else "[…]"


def _draw_through(own: dict[str, Any], places: set[int]) -> None:
    """What a Subset's indices and a ConcatDataset's parts make of the drawn places."""
    indices, sizes = own.get("indices"), own.get("cumulative_sizes")
    drawn: list[Any] = []
    if type(indices) is list and "dataset" in own:
        drawn = [indices[place] for place in places if 0 <= place < len(indices)]
    elif type(sizes) is list and "datasets" in own and len(sizes) <= PARTS and all(type(s) is int for s in sizes):
        begins = [0, *sizes]
        drawn = [place - begins[bisect_right(sizes, place)] for place in places if place >= 0]
    places.update([each for each in drawn if type(each) is int][: max(0, PLACES - len(places))])


_ATOMS = objects.ids(type(None), bool, int, float, complex, str, bytes, bytearray, range, slice, type)
