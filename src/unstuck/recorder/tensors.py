"""The one walk over a batch: what lies in nested tuples, lists, dicts and dataclasses, each with its path.

Nothing of the user's is run, and whatever it gets, it looks at no more than a few hundred things.
"""

from __future__ import annotations

import re
import sys
from collections import UserDict
from itertools import islice

from . import objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal

    Inside = list[tuple[str, Any]]

NODES = 256
"""Things that one walk looks at, containers too."""
PARTS = 16
"""A container with more is long: it is looked into as the walk says."""
SPREAD = 8
"""Of a long one, so many evenly spread over it."""
DEEP = 4
FLAT = 16
"""Of so many, spread over a sequence, it is looked whether they are plain values."""
NAME = 80
"""Characters of a key that a path shows."""
TARGET_KEYS = ("label", "labels", "target", "targets", "y", "class", "classes")
_ATOMS = objects.ids(str, int, float, bool, bytes, type(None))


class Leaf:
    """What is no container, or one of plain values only."""

    __slots__ = ("path", "place", "times", "value")

    def __init__(self, path: str, value: Any, place: int | None, times: float) -> None:
        self.path, self.value = path, value
        self.place = place
        """In the outermost sequence that is as long as the batch has samples."""
        self.times = times
        """It stands for so many: not all of a long container were looked at."""


class Walk:
    """One walk. `long`: of a long container the first elements are looked at, some spread over it, or none."""

    __slots__ = ("_plain", "deep", "left", "long", "samples", "seen")

    def __init__(self, long: Literal["first", "spread", "none"] = "first", deep: int = DEEP, samples: int = 0) -> None:
        self.long, self.deep, self.samples, self.left = long, deep, samples, NODES
        self.seen: set[int] = set()
        """The id of everything that was looked at."""
        self._plain = sys.modules["torch"].Tensor

    def leaves(
        self, thing: Any, path: str = "", depth: int = 0, place: int | None = None, times: float = 1.0
    ) -> Iterator[Leaf]:
        """All there are, in order."""
        self.left -= 1
        if self.left < 0:
            return
        self.seen.add(id(thing))
        count, inside = self._inside(thing) if depth < self.deep else (0, None)
        if inside is None:
            yield Leaf(path, thing, place, times)
            return
        in_order = issubclass(type(thing), (list, tuple))
        by_sample = place is None and self.samples > 1 and count == self.samples and in_order
        step = count / len(inside) if inside else 0.0
        for number, (name, part) in enumerate(inside):
            at = int(number * step if self.long == "spread" else number) if by_sample else place
            yield from self.leaves(part, path + name, depth + 1, at, times * step)

    def _inside(self, thing: Any) -> tuple[int, Inside | None]:
        """How much a container holds, and what of it is looked at, each with how it is written; None: it is none."""
        kind = type(thing)
        if kind is self._plain or id(kind) in _ATOMS:
            return 0, None
        if issubclass(kind, tuple):
            return self._in_sequence(thing, tuple, written(kind, "_fields"))
        if issubclass(kind, list):
            return self._in_sequence(thing, list, None)
        if issubclass(kind, dict):
            return self._in_dict(thing)
        if is_user_dict(kind):
            data = (objects.instance_dict(thing) or {}).get("data")
            return self._in_dict(data) if issubclass(type(data), dict) else (0, [])
        fields = written(kind, "__dataclass_fields__")
        if type(fields) is dict:
            own = objects.instance_dict(thing) or {}
            names = [name for name in islice(fields, PARTS) if type(name) is str and name in own]
            return len(names), [(f".{name}", own[name]) for name in names]
        return 0, None

    def _in_sequence(self, thing: Any, base: Any, names: Any) -> tuple[int, Inside | None]:
        count = base.__len__(thing)
        if _is_flat(thing, base, count):
            return count, None
        places: Sequence[int] = range(count)
        if count > PARTS:
            spread = [number * count // SPREAD for number in range(SPREAD)]
            places = {"first": range(PARTS), "spread": spread, "none": ()}[self.long]
        named = type(names) is tuple and len(names) == count and all(type(name) is str for name in names[:PARTS])
        return count, [(f".{names[at]}" if named else f"[{at}]", base.__getitem__(thing, at)) for at in places]

    def _in_dict(self, thing: Any) -> tuple[int, Inside]:
        return dict.__len__(thing), [
            (_key(key, number), part) for number, (key, part) in enumerate(objects.some_of(dict.items(thing), PARTS))
        ]


def parts(batch: Any) -> Iterator[tuple[str, Any]]:
    """(path, plain tensor | list or tuple of texts); what is neither is passed over, and so are long lists: those are
    of samples that were not put together."""
    tensor = sys.modules["torch"].Tensor
    for leaf in Walk("none").leaves(batch):
        kind = type(leaf.value)
        if kind is tensor or ((kind is list or kind is tuple) and leaf.value and _is_texts(leaf.value)):
            yield leaf.path, leaf.value


def plain_tensors(batch: Any, deep: int = DEEP) -> Iterator[tuple[str, Any]]:
    """(path, plain tensor); of long lists the first."""
    tensor = sys.modules["torch"].Tensor
    return ((leaf.path, leaf.value) for leaf in Walk(deep=deep).leaves(batch) if type(leaf.value) is tensor)


def total_bytes(batch: Any, subclasses: bool = False) -> int:
    """Of its plain tensors and arrays, wherever they are; of a long list, as some of its elements let expect.
    `subclasses`: also of tensors whose methods may be the user's."""
    tensor, array = sys.modules["torch"].Tensor, getattr(sys.modules.get("numpy"), "ndarray", None)
    total = 0.0
    for leaf in Walk("spread", deep=6).leaves(batch):
        kind = type(leaf.value)
        if kind is tensor or (subclasses and issubclass(kind, tensor)):
            total += leaf.times * leaf.value.numel() * leaf.value.element_size()
        elif kind is array:
            total += leaf.times * leaf.value.nbytes
    return int(total)


def _is_flat(thing: Any, base: Any, count: int) -> bool:
    """It holds plain values: nothing in it is a tensor."""
    return _ATOMS.issuperset(map(id, map(type, base.__getitem__(thing, slice(0, count, 1 + count // FLAT)))))


def _is_texts(values: Any) -> bool:
    return all(type(each) is str for each in values[:: 1 + len(values) // FLAT])


def is_user_dict(kind: type) -> bool:
    """What tokenizers give. `issubclass` would ask all subclasses of it."""
    return any(each is UserDict for each in objects.mro_of(kind))


def written(kind: type, name: str) -> Any:
    """An attribute of a class as it is written there; None where it has none."""
    found = objects.in_class(kind, name)
    return None if found is None else found[1]


def _key(key: Any, number: int) -> str:
    if type(key) is str:
        return f"[{key[:NAME]!r}]"
    return f"[{key}]" if type(key) is int and -(1 << 63) <= key < 1 << 63 else f"[key {number}]"


def target_among(paths: list[str]) -> str | None:
    """Where the target is by custom: under a name that says so, else the last of several."""
    if len(paths) < 2:
        return None
    for path in paths:
        if path.strip("[]'.").rpartition("['")[2].lower() in TARGET_KEYS:
            return path
    return paths[-1] if paths[-1].endswith("]") and paths[-1].strip("[]").isdigit() else None


def beside_target(path: str, target: str) -> bool:
    """It comes after the target in the same tuple or list, or has a name that says that it is one too."""
    if path == target:
        return False
    (before, place), (same, at) = (_last(each) for each in (path, target))
    if before == same and place.isdigit() and at.isdigit():
        return int(place) > int(at)
    return any(word in TARGET_KEYS for word in re.split(r"[^a-z]+", place.lower()))


def _last(path: str) -> tuple[str, str]:
    """A path without its last step, and that."""
    found = re.fullmatch(r"(.*?)(?:\['?([^\[\]']*)'?\]|\.(\w+))", path, re.DOTALL)
    return (found.group(1), found.group(2) or found.group(3) or "") if found else (path, "")


def readable(tensor: Any) -> bool:
    """A plain tensor in main memory."""
    return bool(
        tensor.device.type == "cpu"
        and tensor.layout is sys.modules["torch"].strided
        and not tensor.is_quantized
        and not tensor.is_complex()
    )
