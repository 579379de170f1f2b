"""Do batches that wait in a queue, or states that are kept to learn from, all lie in one memory that goes on changing?

Where there is no loader, containers are found from the frames of the training and of its other threads. What several
of their elements have in common, is as large as what the model gets or as a row of it, and has changed at the next look
though it was kept: that was not meant. A buffer that is filled anew has a name, and is in no queue twice.
"""

from __future__ import annotations

import sys
import threading
from _weakref import ref
from collections import deque
from collections.abc import Iterator
from itertools import islice
from types import FrameType
from typing import Any

from ... import dispatch, flight, journal, objects, tensors, user_code
from ...probe import Probe, is_due
from ...records import Site
from ...records.loaders import KeptInOnePlace
from ..learning import script_lines
from ..object_walk import ObjectWalk, held_by
from . import dataset_memory
from .dataset_memory import Extent
from .watched_memory import has_company
from .writing_line import WritingLine

MOST_OBJECTS, DEPTH, MOST_SECONDS = 1500, 4, 0.002  # of one walk from the frames
MOST_FRAMES, MOST_THREADS = 12, 8
MOST_CONTAINERS, MOST_ELEMENTS, MOST_LEAVES = 6, 32, 8  # that are looked into; the latest; and in one of these
MOST_BYTES = 2048  # of an array
MIN_IN_QUEUE, MIN_KEPT, MIN_ALONE = 2, 3, 16
"""Elements that have it in common: in a queue, or one there and the batch in use; tuples and the like elsewhere, whose
other parts may differ; and where it is the whole element: `[x] * 4` is a list as good as any."""
MIN_CHANGES = 3  # looks at which something kept had changed
MOST_TRIES = 6  # at the line that writes
SKIPPED = ("torch", "numpy", "threading", "logging", "queue", "builtins")  # packages whose objects are not looked into


class Kept:
    """An array or tensor that several elements of a container have in common."""

    def __init__(self, thing: Any, lies: Extent, name: str) -> None:
        self.thing, self.begin, self.name = ref(thing), lies.begin, name
        self.code, self.before = dataset_memory.code_of(thing), dataset_memory.read(lies, MOST_BYTES)

    def changed(self) -> bytes | None:
        """What is there now, if that is something else."""
        thing = self.thing()
        lies = dataset_memory.extent(thing) if thing is not None else None
        if lies is None or lies.begin != self.begin:
            return None
        now = dataset_memory.read(lies, MOST_BYTES)
        return None if now == self.before else now


class KeptBatches(Probe):
    name = "kept"
    governed = frozenset(("graph_given",))

    def __init__(self) -> None:
        self._line = WritingLine(self.name, self._is_written)
        self.forget()

    def forget(self) -> None:
        self._line.leave()
        self.kept: list[Kept] = []
        self.looks = self.changes = self._tries = 0
        self._told = False

    def remove(self) -> None:
        self._line.leave()

    last = remove

    def missed(self, event: str) -> None:
        self._line.leave()

    def graph_given(self, tensor: Any, frame: FrameType | None, _plain: bool) -> None:
        self._line.leave()
        if self._told or not tensor.dim():
            return
        self.looks += 1
        found = next(((part, now) for part in self.kept if (now := part.changed()) is not None), None)
        if found is not None:
            self.changes += 1
            if self.changes >= MIN_CHANGES and (self._line.site or self._tries == MOST_TRIES or has_company()):
                self._tell(*found)
                return
        self.kept = list(self._gather(tensor, frame)) if self.kept or is_due(self.looks) else []
        if self.changes and self.kept and self._line.site is None and self._tries < MOST_TRIES and not has_company():
            self._tries += 1
            self._line.follow(sys._getframe(), frozenset())

    def _is_written(self) -> bool:
        return any(part.changed() is not None for part in self.kept)

    def _gather(self, given: Any, frame: FrameType | None) -> Iterator[Kept]:
        """What several elements have in common, and could be what the model gets."""
        sizes = given.numel(), given.numel() // max(1, given.shape[0])
        lies = dataset_memory.extent(given)
        in_use = lies.begin if lies is not None else 0
        for name, container, waits in islice(_containers(frame), MOST_CONTAINERS):
            common: dict[tuple[str, int], set[int]] = {}
            for element, path, thing, lies in _leaves(container):
                if _numel(thing) not in sizes:
                    continue
                elements = common.setdefault((path, lies.begin), set())
                elements.add(element)
                needed = MIN_IN_QUEUE - (lies.begin == in_use) if waits else MIN_KEPT if path else MIN_ALONE
                if len(elements) == needed and not _is_trained(lies.begin):
                    yield Kept(thing, lies, name)

    def _tell(self, part: Kept, now: bytes) -> None:
        self._told = True
        line, called = self._line.site, ""
        if line is None and has_company():
            line, called = _holder(part.begin)
        before, after = dataset_memory.first_change(part.code, part.before, now) or (None, None)
        journal.tell(
            KeptInOnePlace(
                name=part.name, looks=self.looks, changes=self.changes, line=line, called=called,
                value_before=before, value_after=after, step=flight.steps(),
            )
        )  # fmt: skip


def _containers(frame: FrameType | None) -> Iterator[tuple[str, Any, bool]]:
    """Lists and deques of several things, with the names they are reached by, and whether they are of a queue."""
    walk = ObjectWalk(_inside, MOST_OBJECTS, DEPTH, MOST_SECONDS)
    for name, thing in walk.over(_named(frame)):
        if _is_container(thing):
            yield name, thing, False
        elif objects.module_of(type(thing)) == "queue" and _is_container(within := objects.Own(thing).get("queue")):
            yield name, within, True


def _named(frame: FrameType | None) -> Iterator[tuple[str, Any]]:
    """What functions of the user's call by a name: of this thread, and of others."""
    for inner in (frame, *_others()):
        for user in islice(script_lines.user_frames(inner), MOST_FRAMES):
            yield from script_lines.names_in(user).items()


def _others() -> list[FrameType]:
    """Where other threads are."""
    mine = threading.get_ident()
    return [each for thread, each in sys._current_frames().items() if thread != mine][:MOST_THREADS]


def _holder(begin: int) -> tuple[Site | None, str]:
    """The function of another thread that has a name for this memory: where it is, and that name."""
    for inner in _others():
        for user in islice(script_lines.user_frames(inner), MOST_FRAMES):
            site = user_code.site_of(user)
            for name, lies in dataset_memory.held(script_lines.names_in(user), set())[0]:
                if lies.begin == begin:
                    return site, name.removeprefix("['").replace("']", "", 1)
    return None, ""


def _inside(thing: Any) -> Iterator[tuple[str, Any]]:
    kind = type(thing)
    if _is_container(thing) and objects.length(thing) > objects.SHORT:
        return iter(())
    plain = issubclass(kind, (list, tuple, dict, deque)) or objects.module_of(kind).partition(".")[0] not in SKIPPED
    return held_by(thing, objects.SHORT) if plain and not issubclass(kind, type) else iter(())


def _is_container(thing: Any) -> bool:
    return issubclass(type(thing), (list, deque)) and objects.length(thing) > 0


def _leaves(container: Any) -> Iterator[tuple[int, str, Any, Extent]]:
    """Of its latest elements: arrays and tensors, each with which element that is, and its path within it."""
    kind = deque if issubclass(type(container), deque) else list
    count = kind.__len__(container)
    for place in range(max(0, count - MOST_ELEMENTS), count):
        try:
            element = kind.__getitem__(container, place)
        except IndexError:  # another thread has taken it out
            return
        if objects.module_of(type(element)) == "concurrent.futures._base":
            element = objects.Own(element).get("_result")
        for leaf in islice(tensors.Walk(deep=2).leaves(element), MOST_LEAVES):
            lies = dataset_memory.extent(leaf.value)
            if lies is not None and _numel(leaf.value) > 1:
                yield id(element) if leaf.path else place, leaf.path, leaf.value, lies


def _is_trained(begin: int) -> bool:
    """A parameter or a gradient begins there: what is kept is how the training went."""
    lying = map(dataset_memory.extent, dispatch.ask("learning", "trained") or ())
    return any(lies is not None and lies.begin == begin for lies in lying)


def _numel(thing: Any) -> int:
    return int(thing.numel() if dataset_memory.is_tensor(thing) else sys.modules["numpy"].ndarray.size.__get__(thing))
