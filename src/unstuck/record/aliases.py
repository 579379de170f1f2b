"""Does a batch lie in the data set's own memory, and does the training write to it there?

A batch that was handed out is compared with what the data set holds, by address. Where they share memory, its bytes
are kept, and compared when the next batches are asked for: what changed in between was written by the training. What
changes while a batch is fetched is written by the data set itself (a buffer that it fills anew), and is its own affair.
"""

from __future__ import annotations

import sys
from _weakref import ref

from . import facts, flight, governor, held, memory_of, writes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .passes import Ledger

FIRST = 4
"""Batches of a loader that are compared in any case; then those whose number is a power of two."""
LEAVES = 32
KEPT = 4
"""Batches that stay under watch: some trainers draw the next one before they use the last."""
BYTES = 1 << 16
"""Of one batch, that are kept."""
REGIONS = 3
"""So many places must have been written to, each with data of its own; at the end of a pass two will do."""
TRIES = 3
watched: list[Watched] = []
"""Parts of the last batches that lie in a data set's memory."""
_loaders: dict[int, Shares] = {}


class Shares:
    """What is known of one loader."""

    def __init__(self) -> None:
        self.looks = self.shared = self.changes = self.again = self.tries = 0
        self.own = self.told = False
        self.written: dict[int, bytes] = {}
        """By address: how the training left what it wrote to."""
        self.latest: dict[str, Any] = {}
        self.line: list[str | int] | None = None


class Watched:
    """A part of a batch that lies in the data set's memory."""

    __slots__ = ("age", "before", "begin", "end", "loader", "name", "sample", "thing", "version", "whole")

    def __init__(self, loader: Shares, name: str, own: held.Extent, begin: int, end: int, sample: Any) -> None:
        self.loader, self.name, self.sample, self.age = loader, name, sample, 0
        self.thing: Callable[[], Any] = ref(own.thing)
        self.begin, self.end, self.whole = begin, end, BYTES
        self.before = b""
        self.version: int | None = None

    def lies(self) -> held.Extent | None:
        """Where it is, if what the data set held is still there and in its old place."""
        thing = self.thing()
        own = held.extent(thing) if thing is not None else None
        if own is None or not own.begin <= self.begin or self.end > own.end:
            return None
        return held.Extent(thing, self.begin, self.end)

    def read(self) -> bytes | None:
        lies = self.lies()
        return None if lies is None else memory_of.read(lies, self.whole)


def stop() -> None:
    """Nothing is watched any more."""
    watched.clear()
    writes.leave()


def forget() -> None:
    """In a forked child: it has none of the batches, and its lines are its own."""
    stop()
    _loaders.clear()


def came(ledger: Ledger, iterator: Any, batch: Any, drawn: Any) -> None:
    """A batch was handed out that may be looked at."""
    known = _loaders.get(ledger.number)
    if known is None:
        known = _loaders[ledger.number] = Shares()
    if known.own or not _is_worth(known) or not governor.allows():
        return
    with governor.Reading(), sys.modules["torch"]._C.DisableTorchFunction():
        known.looks += 1
        _look(known, ledger, iterator, batch, _index(iterator, drawn))


def _is_worth(known: Shares) -> bool:
    looks = known.looks
    return looks < FIRST or bool(known.shared) or not looks & (looks - 1)


def _index(iterator: Any, drawn: Any) -> Any:
    """Indices that made up the batch handed out last."""
    own = iterator.__dict__
    number = own["_rcvd_idx"] - 1 if "_rcvd_idx" in own else own.get("_num_yielded", 0) - 1
    return next((index for key, _, _, index in reversed(drawn or ()) if key == number), None)


def _look(known: Shares, ledger: Ledger, iterator: Any, batch: Any, index: Any) -> None:
    parts: list[tuple[int | None, held.Extent]] = []
    given: set[int] = set()
    every = list(index) if type(index) in (list, tuple) else [index]
    for place, part in leaves(batch, given, len(every)):
        lies = held.extent(part)
        if lies is not None:
            parts.append((place, lies))
        if len(parts) >= LEAVES:
            break
    dataset = iterator.__dict__.get("_dataset")
    owners: set[int] = set()
    holding = list(held.held(dataset, {each for each in every if type(each) is int}, owners)) if parts else []
    new = []
    for place, lies in parts:
        found = _shared(lies, holding, bool(ledger.workers))
        if found is None:
            continue
        name, own, begin = found
        sample = every[place] if place is not None else every[0] if len(every) == 1 else None
        new.append(Watched(known, name, own, begin, begin + lies.end - lies.begin, sample))
    _watch(known, new)
    if new and known.changes and known.line is None and known.tries < TRIES:
        known.tries += 1
        writes.follow(sys._getframe(), _has_changed, frozenset(owners - given))


def _shared(
    lies: held.Extent, holding: list[tuple[str, held.Extent]], workers: bool
) -> tuple[str, held.Extent, int] | None:
    """What of the data set's it lies in, and at which address there. What requires a gradient is trained itself."""
    inside = [(name, own) for name, own in holding if own.holds(lies)]
    if inside:
        name, own = min(inside, key=lambda each: each[1].end - each[1].begin)
        whole = lies.end <= own.end and not getattr(own.thing, "requires_grad", False)
        return (name, own, lies.begin) if whole else None
    if workers:
        for name, own in holding:
            place = memory_of.same_memory(lies, own)
            if place is not None and place + lies.end - lies.begin <= own.end - own.begin:
                return name, own, own.begin + place
    return None


def _watch(known: Shares, new: list[Watched]) -> None:
    for each in new:
        each.whole = max(512, BYTES // len(new))
        each.before = each.read() or b""
        each.version = memory_of.version(each.thing())
        known.again += known.written.get(each.begin) == each.before
    watched.extend(new)
    known.shared += bool(new)


def leaves(
    batch: Any, given: set[int], size: int, place: int | None = None, depth: int = 0
) -> Iterator[tuple[int | None, Any]]:
    """Tensors and arrays of a batch, each with its place in the first list that is as long as the batch has samples;
    `given` gets the id of all there is."""
    kind = type(batch)
    given.add(id(batch))
    if issubclass(kind, (list, tuple)) and depth < 4:
        base = list if issubclass(kind, list) else tuple
        by_sample = place is None and size > 1 and base.__len__(batch) == size
        for number, part in enumerate(base.__iter__(batch)):
            yield from leaves(part, given, size, number if by_sample else place, depth + 1)
    elif issubclass(kind, dict) and depth < 4:
        for part in list(dict.values(batch)):
            yield from leaves(part, given, size, place, depth + 1)
    else:
        yield place, batch


def _has_changed() -> bool:
    return any(each.before and each.read() not in (each.before, None) for each in watched)


def asked() -> None:
    """The next batch is asked for: what of those before it has changed since?"""
    if not watched:
        return
    with governor.Reading(), sys.modules["torch"]._C.DisableTorchFunction():
        followed = writes.following()
        writes.leave()
        for each in watched:
            now = each.read()
            if now is not None and now != each.before:
                _note(each, now, followed)
                each.before = now
            each.age += 1
        for known in {id(each.loader): each.loader for each in watched}.values():
            _tell(known, REGIONS)
        watched[:] = [each for each in watched if each.age < KEPT]


def fetched() -> None:
    """The batch is there: what has changed meanwhile was changed by the data set itself."""
    with governor.Reading(), sys.modules["torch"]._C.DisableTorchFunction():
        for each in watched:
            now = each.read()
            if now is not None and now != each.before:
                each.loader.own = True
    watched[:] = [each for each in watched if not each.loader.own]


def ended(ledger: Ledger) -> None:
    """A pass is over, or another begins: what happens to the data between passes is not written to a batch."""
    writes.leave()
    watched.clear()
    known = _loaders.get(ledger.number)
    if known is not None:
        _tell(known, 2)


def _note(each: Watched, now: bytes, followed: bool) -> None:
    known = each.loader
    if followed and writes.found is not None and known.line is None:
        known.line = writes.found["site"]
        known.own = known.own or bool(writes.found["own"])
    known.changes += 1
    if len(known.written) < 64 or each.begin in known.written:
        known.written[each.begin] = now
    lies = each.lies()
    if lies is None:
        return
    known.latest = {
        "attribute": each.name.lstrip("."),
        "sample": each.sample if type(each.sample) in (int, str) else None,
        "address": each.begin,
        "bytes": each.end - each.begin,
        "version": [each.version, memory_of.version(lies.thing)],
        "values": memory_of.values(lies, each.before, now),
        "step": flight.steps,
    }


def _tell(known: Shares, regions: int) -> None:
    """Once, when it is certain; the line is waited for."""
    certain = len(known.written) >= regions or (known.changes and known.again)
    if known.told or known.own or not certain or (known.line is None and known.tries < TRIES and regions > 2):
        return
    number = next(number for number, each in _loaders.items() if each is known)
    known.told = True
    counts = {"looks": known.looks, "shared": known.shared, "changes": known.changes, "again": known.again}
    facts.tell("batch-aliased", {"number": number, **counts, "line": known.line, **known.latest})
