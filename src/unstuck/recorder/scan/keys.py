"""What a loader asks its data set for: each key once, as its sampler draws them, without moving that sampler on."""

from __future__ import annotations

import array
import copy
import random
import sys
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

ROUNDS = 4
"""Times the data set's length that are drawn at most: a sampler may go on for ever."""
MOST = 20_000_000
SECONDS = 30.0


class Keys:
    """`all`: the keys, in order where they are numbers; `batches`: each of them asks for a whole batch; `cut`: there
    may be more."""

    def __init__(self, keys: Sequence[Any], batches: bool = False, cut: bool = False) -> None:
        self.all, self.batches, self.cut = keys, batches, cut


def of(loader: Any, limit: int | None) -> Keys:
    """Of a loader whose data set is no stream."""
    own = loader.__dict__
    dataset, batches = own["dataset"], own.get("batch_sampler")
    known = _known(dataset, own.get("sampler")) if batches is None or _is(batches, "BatchSampler") else None
    if known is not None:
        return Keys(known if limit is None else known[:limit])
    with _Unmoved():
        drawing = _copied(batches if batches is not None else own.get("sampler"), dataset)
        return _drawn(iter(drawing), batches is not None, size_of(dataset), limit)


def size_of(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def _is(thing: Any, *names: str) -> bool:
    return type(thing).__module__.startswith("torch.utils.data") and type(thing).__name__ in names


def _known(dataset: Any, sampler: Any) -> Sequence[int] | None:
    """Of torch's own samplers: what they can draw at all."""
    own = getattr(sampler, "__dict__", {})
    if _is(sampler, "DistributedSampler"):  # this rank draws its share; all of them together draw everything
        return range(len(dataset))
    if _is(sampler, "SequentialSampler", "RandomSampler"):
        return range(len(own["data_source"]))
    if _is(sampler, "WeightedRandomSampler"):
        return array.array("q", [at for at, weight in enumerate(own["weights"].tolist()) if weight > 0])
    return None


def _drawn(drawing: Iterator[Any], batched: bool, size: int | None, limit: int | None) -> Keys:
    found: dict[Any, Any] = {}
    draws, until, cut, batches = 0, monotonic() + SECONDS, False, False
    most = MOST if size is None else max(1000, ROUNDS * size)
    for drawn in drawing:
        for key in drawn if batched else (drawn,):
            draws += 1
            batches = batches or isinstance(key, list)
            found.setdefault(_name(key), key)
        if limit is not None and len(found) >= limit:
            break
        if draws >= most or (not draws & 1023 and monotonic() > until):
            cut = len(found) != size
            break
    keys = list(found.values())
    if all(_is_number(key) for key in keys):
        return Keys(array.array("q", sorted(map(int, keys))[:limit]), cut=cut)
    return Keys(keys[:limit], batches, cut)


def _is_number(key: Any) -> bool:
    kind = type(key)
    return kind is int or (kind.__module__ == "numpy" and hasattr(kind, "__index__") and not hasattr(kind, "__len__"))


def _name(key: Any) -> Any:
    if type(key) is list:
        return tuple(_name(each) for each in key)
    try:
        hash(key)
    except TypeError:
        return repr(key)
    return repr(key) if getattr(type(key), "__hash__", None) == object.__hash__ else key


def _copied(sampler: Any, dataset: Any) -> Any:
    """A copy that draws for us; it shares the data set."""
    kept = {id(dataset): dataset}
    inner = getattr(dataset, "__dict__", {})
    kept.update({id(value): value for value in inner.values()})
    try:
        return copy.deepcopy(sampler, kept)
    except Exception:  # it holds what cannot be copied
        return sampler


class _Unmoved:
    """The random numbers of the script stay where they are."""

    def __enter__(self) -> None:
        torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
        self.states = torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None

    def __exit__(self, *_: object) -> None:
        torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
        torch.set_rng_state(self.states[0])
        random.setstate(self.states[1])
        if numpy is not None and self.states[2] is not None:
            numpy.random.set_state(self.states[2])
