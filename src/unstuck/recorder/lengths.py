"""How long something would say it is, worked out without asking it.

A user's `__len__` may draw random numbers, build batches or print: it is never called. What it gives back is worked out
from its code where that is plain, as the conditions of loops are; of torch's own classes it is known.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from types import FunctionType, GetSetDescriptorType

from .objects import (
    UNKNOWN,
    Own,
    attribute,
    class_dict,
    class_name,
    entry,
    ids,
    in_class,
    module_dict,
    mro_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEEP = 6
"""Things whose length is that of another."""
MOST_NODES = 16  # of torchdata's, one after another
_CONTAINERS: tuple[Any, ...] = (list, tuple, dict, set, frozenset, str, bytes, bytearray, range, deque, array)
_BASES = {id(kind): kind for kind in _CONTAINERS}
_WHOLE = ids(bool, int)
_OF_TORCH = {  # its attribute that is as long, or that says how long
    "TensorDataset": "tensors",
    "Subset": "indices",
    "ConcatDataset": "cumulative_sizes",
    "SequentialSampler": "data_source",
    "RandomSampler": "data_source",
    "SubsetRandomSampler": "indices",
    "WeightedRandomSampler": "num_samples",
    "DistributedSampler": "num_samples",
    "BatchSampler": "sampler",
}


def length(thing: Any, deep: int = 0) -> int | None:
    """What `len(thing)` would be, or None where it has none or that cannot be worked out."""
    found = in_class(type(thing), "__len__")
    return None if found is None or deep > DEEP else length_by(thing, *found, deep)


def length_by(thing: Any, owner: type, written: Any, deep: int) -> int | None:
    """The same by the `__len__` that is written in the class `owner`."""
    try:
        if id(owner) in _BASES:
            return int(_BASES[id(owner)].__len__(thing))
        if _is_of(owner, "torch", "Tensor") or _is_of(owner, "numpy", "ndarray"):
            shape = shape_of(thing)
            return shape[0] if shape else None
        return _by_function(thing, owner, written, deep) if type(written) is FunctionType else None
    except (OverflowError, RuntimeError):  # a range; a thing that another thread changes
        return None


def _by_function(thing: Any, owner: type, written: FunctionType, deep: int) -> int | None:
    name, code = class_name(owner), written.__code__
    if _is_of(owner, "torch.utils.data", "DataLoader"):
        return loader_length(thing, deep)
    if type(thing) is owner and name in _OF_TORCH and _is_of(owner, "torch.utils.data", name):
        return _by_formula(name, Own(thing), deep)
    if code.co_code == _attribute.__code__.co_code and len(code.co_names) == 1:
        said = attribute(thing, code.co_names[0])
        if type(said) is int:
            return _whole(said)
    elif code.co_code == _length_of_attribute.__code__.co_code and entry(written.__globals__, "len") is UNKNOWN:
        held = attribute(thing, code.co_names[1]) if code.co_names[0] == "len" else UNKNOWN
        if held is not UNKNOWN:
            return length(held, deep + 1)
    from .probes.loops.returns import given_back

    return _whole(given_back(written, thing, owner, deep + 1))


# Most are one of these two: that can be seen from the code, without the source and what reads it.
def _attribute(self: Any) -> Any:
    return self.attribute


def _length_of_attribute(self: Any) -> Any:
    return len(self.attribute)


def _is_of(kind: type, module: str, name: str) -> bool:
    """It is the library's own class of that name, not one that only calls itself so."""
    return (module_dict(sys.modules.get(module)) or {}).get(name) is kind


def _by_formula(name: str, own: Own, deep: int) -> int | None:
    held = own.get(_OF_TORCH[name])
    if name == "RandomSampler" and own.get("_num_samples") is not None:
        return _whole(own["_num_samples"])
    if name == "TensorDataset":
        return length(held[0], deep + 1) if type(held) is tuple and held else None
    if name == "ConcatDataset":
        return _whole(held[-1]) if type(held) is list and held else None
    known = _whole(held) if type(held) is int else length(held, deep + 1)
    return _batches(known, own.get("batch_size"), own.get("drop_last")) if name == "BatchSampler" else known


def _batches(samples: int | None, size: Any, drop_last: Any) -> int | None:
    if samples is None or type(size) is not int or size < 1 or type(drop_last) is not bool:
        return None
    return samples // size if drop_last else -(-samples // size)


def shape_of(thing: Any) -> tuple[int, ...] | None:
    """Of a tensor or an array; one of a class made from Tensor is not asked."""
    kind = type(thing)
    if _is_of(kind, "torch", "Tensor") or _is_of(kind, "torch.nn", "Parameter"):
        from . import hiding

        with hiding.Hidden():
            return tuple(thing.shape)
    for base in mro_of(kind):
        if _is_of(base, "numpy", "ndarray"):
            slot = class_dict(base)["shape"]
            return tuple(slot.__get__(thing)) if type(slot) is GetSetDescriptorType else None
    return None


def _whole(value: Any) -> int | None:
    return int(value) if id(type(value)) in _WHOLE and 0 <= value < 1 << 62 else None


def loader_length(loader: Any, deep: int = 0) -> int | None:
    """Batches of one pass, as the loader itself would say. Not `len(loader)`: torch remembers having been asked."""
    own = Own(loader)
    samples = own.get("dataset")
    if not is_iterable(loader):
        drawn = drawing(loader)
        known = None if drawn is None else length(drawn, deep + 1)
        if known is not None:
            return known
        # A sampler that does not say how long it is goes, in one pass, once through the dataset.
        return _batches(length(samples, deep + 1), own.get("batch_size"), False)
    known = length(samples, deep + 1)
    batched = own.get("batch_sampler") is not None
    return _batches(known, own.get("batch_size"), own.get("drop_last")) if batched else known


def drawing(loader: Any) -> Any:
    """What its batches are drawn by. Not `or`, which would ask the user's sampler for its length."""
    own = Own(loader)
    batches = own.get("batch_sampler")
    return batches if batches is not None else own.get("sampler")


def parts(loader: Any) -> list[Own]:
    """What a loader holds; after it, what each of torchdata's nodes does, from the last one to the source."""
    found, node = [Own(loader)], Own(loader).get("root")
    while node is not None and len(found) < MOST_NODES:
        found.append(Own(node))
        node = found[-1].get("source")
    return found


def is_iterable(loader: Any) -> bool:
    kind = Own(loader).get("_dataset_kind")
    return type(kind) is int and kind == 1
