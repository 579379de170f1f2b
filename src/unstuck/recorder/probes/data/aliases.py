"""Does a batch lie in the data set's own memory, and does the training write to it there?

A batch that was handed out is compared with what the data set holds, by address. Where they share memory, its bytes
are kept, and compared when the next batches are asked for: what changed in between was written by the training. What
changes while a batch is fetched is written by the data set itself (a buffer that it fills anew), and is its own affair.
Where threads run beside the training, only the batch in work counts: they may fill the memory of those before it.

That the training writes there is one thing; that it does harm is proven when a later pass is given what was left, and
that is changed once more.
"""

from __future__ import annotations

import sys
import threading
from _weakref import ref
from types import FunctionType, MethodType

from ... import facts, flight, governor, objects
from . import dataset_tensors, memory_bytes, writing_line

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
PLACES = 4096
"""Of a loader, that are known by how they were left."""
PROOF = 32
"""Bytes that must have come again as they were left, and been changed again: fewer may be alike by chance."""
ENOUGH = 256
"""Places that came again as they were left: then it is looked at now and then only."""
TRIES = 3
WRITES, HARM = 1, 2
"""What was told: that the training writes there; that a later pass is given what it left, and changes that too."""
BESIDE = frozenset(("torch", "multiprocessing", "tqdm", "wandb", "tensorboard", "tensorboardX", "lightning"))
"""Packages whose threads write to no data set."""
watched: list[Watched] = []
"""Parts of the last batches that lie in a data set's memory."""
_loaders: dict[int, Shares] = {}
_company = False
"""Since the batch in work came, threads ran beside the training."""


class Shares:
    """What is known of one loader."""

    def __init__(self, iterable: bool = False) -> None:
        self.looks = self.shared = self.changes = self.tries = self.told = self.number = 0
        self.again = self.anew = self.rewritten = self.proof = self.told_again = 0
        """In later passes: places that came as they were left; that did not; those that were then changed again."""
        self.iterable, self.own = iterable, False
        self.written: dict[tuple[int, int], tuple[int, int]] = {}
        """By address and bytes read of it: the pass in which the training wrote to it, and how it was left."""
        self.latest: dict[str, Any] = {}
        self.line: list[str | int] | None = None

    @property
    def harmed(self) -> bool:
        """What is read anew in each pass may be as it was left by chance, but not time after time."""
        return self.proof >= PROOF and self.again > 4 * self.anew


class Watched:
    """A part of a batch that lies in the data set's memory."""

    __slots__ = ("age", "before", "begin", "end", "left", "loader", "name", "sample", "thing", "version", "whole")

    def __init__(
        self, loader: Shares, name: str, own: dataset_tensors.Extent, begin: int, end: int, sample: Any
    ) -> None:
        self.loader, self.name, self.sample, self.age = loader, name, sample, 0
        self.thing: Callable[[], Any] = ref(own.thing)
        self.begin, self.end, self.whole = begin, end, BYTES
        self.before = b""
        self.version: int | None = None
        self.left = False
        """A later pass was given it as the training had left it."""

    @property
    def key(self) -> tuple[int, int]:
        return self.begin, len(self.before)

    def lies(self) -> dataset_tensors.Extent | None:
        """Where it is, if what the data set held is still there and in its old place."""
        thing = self.thing()
        own = dataset_tensors.extent(thing) if thing is not None else None
        if own is None or not own.begin <= self.begin or self.end > own.end:
            return None
        return dataset_tensors.Extent(thing, self.begin, self.end)

    def counts(self) -> bool:
        """What changes in it is the training's doing."""
        return not self.age or not _company

    def read(self) -> bytes | None:
        lies = self.lies()
        return None if lies is None else memory_bytes.read(lies, self.whole)


def stop() -> None:
    """Nothing is watched any more."""
    watched.clear()
    writing_line.leave()


def forget() -> None:
    """In a forked child: it has none of the batches, and its lines are its own."""
    stop()
    _loaders.clear()


def came(ledger: Ledger, iterator: Any, batch: Any, drawn: Any) -> None:
    """A batch was handed out that may be looked at."""
    known = _loaders.get(ledger.number)
    if known is None:
        known = _loaders[ledger.number] = Shares(ledger.iterable)
    known.number = ledger.passes
    if known.own or not _is_worth(known) or not governor.allows():
        return
    with governor.Reading(), sys.modules["torch"]._C.DisableTorchFunction():
        known.looks += 1
        _look(known, ledger, iterator, batch, _index(iterator, drawn))


def _is_worth(known: Shares) -> bool:
    looks = known.looks
    if known.told == HARM:
        return False
    return looks < FIRST or (bool(known.shared) and known.again < ENOUGH) or not looks & (looks - 1)


def _index(iterator: Any, drawn: Any) -> Any:
    """Indices that made up the batch handed out last."""
    own = iterator.__dict__
    number = own["_rcvd_idx"] - 1 if "_rcvd_idx" in own else own.get("_num_yielded", 0) - 1
    return next((index for key, _, _, index in reversed(drawn or ()) if key == number), None)


def _look(known: Shares, ledger: Ledger, iterator: Any, batch: Any, index: Any) -> None:
    parts: list[tuple[int | None, dataset_tensors.Extent]] = []
    given: set[int] = set()
    every = list(index) if type(index) in (list, tuple) else [index]
    for place, part in leaves(batch, given, len(every)):
        lies = dataset_tensors.extent(part)
        if lies is not None:
            parts.append((place, lies))
        if len(parts) >= LEAVES:
            break
    dataset = iterator.__dict__.get("_dataset")
    owners: set[int] = set()
    holding = (
        list(dataset_tensors.held(dataset, {each for each in every if type(each) is int}, owners)) if parts else []
    )
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
        writing_line.follow(sys._getframe(), _has_changed, frozenset(owners - given))


def _shared(
    lies: dataset_tensors.Extent, holding: list[tuple[str, dataset_tensors.Extent]], workers: bool
) -> tuple[str, dataset_tensors.Extent, int] | None:
    """What of the data set's it lies in, and at which address there. What requires a gradient is trained itself."""
    inside = [(name, own) for name, own in holding if own.holds(lies)]
    if inside:
        name, own = min(inside, key=lambda each: each[1].end - each[1].begin)
        trained = memory_bytes.is_tensor(own.thing) and own.thing.requires_grad
        return (name, own, lies.begin) if lies.end <= own.end and not trained else None
    if workers:
        for name, own in holding:
            place = memory_bytes.same_memory(lies, own)
            if place is not None and place + lies.end - lies.begin <= own.end - own.begin:
                return name, own, own.begin + place
    return None


def _watch(known: Shares, new: list[Watched]) -> None:
    for each in new:
        each.whole = max(512, BYTES // len(new))
        each.before = each.read() or b""
        each.version = memory_bytes.version(each.thing())
        number, left = known.written.get(each.key, (known.number, 0))
        if number < known.number:
            each.left = left == hash(each.before)
            known.again += each.left
            known.anew += not each.left
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
    return any(each.before and each.counts() and each.read() not in (each.before, None) for each in watched)


def _has_company() -> bool:
    """Threads are alive that may write to the data: any but the training's, and those known to do other things."""
    mine = threading.get_ident()
    alive = list(threading._active.items())  # type: ignore[attr-defined]  # all the others are methods of threads
    return any(number != mine and _origin(each) not in BESIDE for number, each in alive)


def _origin(thread: Any) -> str:
    """The package its work is written in."""
    work = (objects.instance_dict(thread) or {}).get("_target")
    work = work.__func__ if type(work) is MethodType else work
    module = work.__module__ if type(work) is FunctionType else type(thread).__module__
    return module.partition(".")[0] if type(module) is str else ""


def asked() -> None:
    """The next batch is asked for: what of those before it has changed since?"""
    global _company
    if not watched:
        return
    _company = _company or _has_company()
    with governor.Reading(), sys.modules["torch"]._C.DisableTorchFunction():
        followed = writing_line.following()
        writing_line.leave()
        for each in watched:
            now = each.read()
            if now is not None and now != each.before:
                if each.counts():
                    _note(each, now, followed)
                each.before = now
            each.age += 1
        for known in {id(each.loader): each.loader for each in watched}.values():
            _tell(known, REGIONS)
        watched[:] = [each for each in watched if each.age < KEPT]


def fetched() -> None:
    """The batch is there: what has changed meanwhile was changed by the data set itself."""
    global _company
    _company = _has_company()
    with governor.Reading(), sys.modules["torch"]._C.DisableTorchFunction():
        for each in watched:
            now = each.read()
            if now is not None and now != each.before:
                each.loader.own = True
    watched[:] = [each for each in watched if not each.loader.own]


def ended(ledger: Ledger) -> None:
    """A pass is over, or another begins: what happens to the data between passes is not written to a batch."""
    writing_line.leave()
    watched.clear()
    known = _loaders.get(ledger.number)
    if known is not None:
        _tell(known, 2)
        if known.told == WRITES and known.again and not known.told_again:
            _say(known)


def _note(each: Watched, now: bytes, followed: bool) -> None:
    known = each.loader
    if followed and writing_line.found is not None and known.line is None:
        known.line = writing_line.found["site"]
        known.own = known.own or bool(writing_line.found["own"])
    known.changes += 1
    if each.left:
        known.rewritten += 1
        known.proof += len(now)
        each.left = False
    if len(known.written) < PLACES or each.key in known.written:
        known.written[each.key] = known.number, hash(now)
    lies = each.lies()
    if lies is None:
        return
    known.latest = {
        "attribute": each.name.lstrip("."),
        "sample": each.sample if type(each.sample) in (int, str) else None,
        "address": each.begin,
        "bytes": each.end - each.begin,
        "version": [each.version, memory_bytes.version(lies.thing)],
        "values": memory_bytes.values(lies, each.before, now),
        "step": flight.steps(),
    }


def _tell(known: Shares, regions: int) -> None:
    """Once that it writes, and once that it does harm; the line is waited for. A stream may read all of it anew in the
    next pass: of that nothing is said before the harm."""
    writes_there = len(known.written) >= regions or (known.changes and known.again)
    level = HARM if known.harmed else WRITES if writes_there and not known.iterable else 0
    if level <= known.told or known.own or (known.line is None and known.tries < TRIES and regions > 2):
        return
    known.told = level
    _say(known)


def _say(known: Shares) -> None:
    known.told_again = known.again
    number = next(number for number, each in _loaders.items() if each is known)
    names = ("looks", "shared", "changes", "again", "rewritten")
    counts = {name: getattr(known, name) for name in names}
    harm = known.told == HARM
    facts.tell("batch-aliased", {"number": number, **counts, "harm": harm, "line": known.line, **known.latest})
