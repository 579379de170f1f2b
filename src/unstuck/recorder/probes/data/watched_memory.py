"""Parts of batches that lie in a dataset's memory, what became of them, and who may have written to them."""

from __future__ import annotations

import threading
from _weakref import ref
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from ... import objects
from ...loading import Loading
from ...records import Site
from . import dataset_memory
from .dataset_memory import Extent, KnownExtents, extent
from .sample_code import package_of

MOST_BYTES = 1 << 16  # of one batch, that are kept
MOST_PLACES = 4096  # of a loader, that are known by how they were left
PROOF_BYTES = 32  # that came again as they were left, and were changed again: fewer may be alike by chance
HARMLESS = frozenset(("torch", "multiprocessing", "tqdm", "wandb", "tensorboard", "tensorboardX", "lightning"))
"""Packages whose threads write to no dataset."""


class Sharing:
    """What is known of one loader."""

    loading: Loading
    passes = 0

    def __init__(self) -> None:
        self.looks = self.shared = self.changes = self.tries = self.reported = 0
        self.again = self.anew = self.rewritten = self.proof = self.reported_again = 0
        """In later passes: places that came as they were left; that did not; those that were then changed again."""
        self.own = False  # the dataset writes there itself: nothing is said of it
        self.written: dict[tuple[int, int], tuple[int, int]] = {}
        """By address and bytes read of it: the pass in which the training wrote to it, and how it was left."""
        self.extents = KnownExtents()
        self.latest: Change | None = None
        self.line: Site | None = None

    @property
    def harmed(self) -> bool:
        """What is read anew in each pass may be as it was left by chance, but not time after time."""
        return self.proof >= PROOF_BYTES and self.again > 4 * self.anew

    def came(self, part: Watched) -> None:
        """A part of a batch that lies in the dataset's memory: did the pass before leave it like this? Of an older one
        nothing is known: it may have been written to meanwhile while nobody looked."""
        passes, left = self.written.get(part.key, (self.passes, 0))
        if passes == self.passes - 1:
            part.left = left == hash(part.before)
            self.again += part.left
            self.anew += not part.left

    def was_written(self, part: Watched, now: bytes) -> None:
        self.changes += 1
        if part.left:
            self.rewritten += 1
            self.proof += len(now)
            part.left = False
        if len(self.written) < MOST_PLACES or part.key in self.written:
            self.written[part.key] = self.passes, hash(now)
        lies = part.lies()
        if lies is not None:
            self.latest = Change(part, lies.thing, now)


class Change:
    """What was seen when a part was written to."""

    def __init__(self, part: Watched, thing: Any, now: bytes) -> None:
        self.part, self.versions = part, (part.version, dataset_memory.version(thing))
        self._before, self._after, self._code = part.before, now, dataset_memory.code_of(thing)

    def values(self) -> tuple[Any, Any]:
        """Of the first number that changed."""
        return dataset_memory.first_change(self._code, self._before, self._after) or (None, None)


class Watched:
    """A part of a batch that lies in the dataset's memory."""

    def __init__(self, sharing: Sharing, name: str, own: Extent, begin: int, size: int, sample: int | None) -> None:
        self.sharing, self.name, self.sample, self.age = sharing, name, sample, 0
        self.thing: Callable[[], Any] = ref(own.thing)
        self.begin, self.end, self.whole = begin, begin + size, MOST_BYTES
        self.before = b""
        self.version: int | None = None
        self.left = False  # a later pass was given it as the training had left it

    @property
    def key(self) -> tuple[int, int]:
        return self.begin, len(self.before)

    def watch(self, whole: int) -> None:
        self.whole = whole
        self.before = self.read() or b""
        self.version = dataset_memory.version(self.thing())

    def lies(self) -> Extent | None:
        """Where it is, if what the dataset held is still there and in its old place."""
        thing = self.thing()
        own = extent(thing) if thing is not None else None
        if own is None or not own.begin <= self.begin or self.end > own.end:
            return None
        return Extent(thing, self.begin, self.end)

    def read(self) -> bytes | None:
        lies = self.lies()
        return None if lies is None else dataset_memory.read(lies, self.whole)

    def changed(self) -> bytes | None:
        """What is there now, if it is something else than before."""
        now = self.read()
        return None if now == self.before else now


def has_company() -> bool:
    """Threads are alive that may write to the data: any but the training's, and those known to do other things."""
    mine = threading.get_ident()
    alive = list(threading._active.items())  # type: ignore[attr-defined]  # all the others are methods of threads
    return any(number != mine and origin(each) not in HARMLESS for number, each in alive)


def origin(thread: Any) -> str:
    """The package its work is written in."""
    work = (objects.instance_dict(thread) or {}).get("_target")
    work = work.__func__ if type(work) is MethodType else work
    module = work.__module__ if type(work) is FunctionType else None
    return module.partition(".")[0] if type(module) is str else package_of(type(thread))
