"""Without a loader: are batches views of a tensor or array that lives on, and is each modified before every use?

Of each batch that meets the weights some numbers are kept, by its place in memory. Where places come again with the
same data changed, the lines of a few steps are followed: one that writes into the tensor, not under its own name, and
leaves the batch just used as it is, modifies batches on their way to the model. A buffer that is filled anew comes back
with other data, a state that is advanced changes after its use. Where a batch is put together of copies, its first rows
are looked for in what the script holds: one that was modified before it was copied is still the same there.
"""

from __future__ import annotations

import sys
from _weakref import ref
from collections.abc import Iterable, Iterator
from itertools import islice
from types import FrameType
from typing import Any

import torch

from ... import flight, gpu, journal, objects
from ...probe import Probe, is_due
from ...records import Site
from ...records.loaders import RewrittenData
from ..learning import script_lines
from ..object_walk import ObjectWalk, held_by
from . import dataset_memory
from .copied_rows import CopiedRows
from .dataset_memory import Extent
from .writing_line import WritingLine

MOST_PLACES = 512
NUMBERS = 1024  # of each that are kept, spread over it
MIN_CHANGE = 0.01  # of its size, between two uses of a place; less is rounding
MIN_ALIKE = 0.5  # correlation, or share of equal numbers, of a place with what it was …
MIN_MORE_ALIKE = 0.2  # … and by so much more than with other places: batches of pictures are all alike a little
COMPARED = 8  # other places
MIN_AGAIN = 4  # places that came again changed; at least twice as many as came with other data; of copies half as many
MOST_SAME = 256  # rows that came again as they had been, and none changed: nobody modifies them
MIN_KEPT = 2  # steps followed in which a line wrote elsewhere than into the batch just used
MOST_TRIES = 6  # steps that are followed
MOST_BYTES = 1 << 20  # of an array, that are compared from line to line: it does not count how often it is written to
MOST_FRAMES, MOST_OBJECTS, DEPTH, MOST_SECONDS = 12, 1500, 3, 0.002  # in which the array of a batch is looked for


class GivenViews(Probe):
    name = "views"

    def __init__(self) -> None:
        self._line = WritingLine(self.name, self._is_written)
        self.forget()

    def forget(self) -> None:
        self._line.leave()
        self._base: Any = None  # weakly: what the batches are views of
        self._state: int | bytes | None = None  # of that, when the batch was used
        self._places: dict[tuple[int, int], Any] = {}  # by where it begins and its size: some of its numbers
        self._used: tuple[Any, Any] | None = None  # how the batch just used lies in it, and some of its numbers then
        self._stayed = False  # it was still that when the tensor was written to
        self.line: Site | None = None
        self._searches = 0
        self._rows = CopiedRows()
        self.looks = self.again = self.other = self.same = self.kept = self.altered = self._tries = 0
        self._numbers: tuple[float, float] | None = None
        self._told = False

    def remove(self) -> None:
        self._line.leave()

    last = remove

    def graph_given(self, tensor: Any, frame: FrameType | None, _plain: bool) -> None:
        self._end_of_step()
        if self._told or not gpu.near(tensor) or tensor.is_complex():
            return
        known = self._base() if self._base is not None else None
        base = dataset_memory.base_of(tensor)
        base = self._array_around(tensor, frame, known) if base is None else base
        copied: list[Any] = []
        if base is None and (self.again or self.same < MOST_SAME):
            base, copied = self._rows.find(tensor, _held(frame), known)
        if base is None or (dataset_memory.is_tensor(base) and base.requires_grad):
            return
        if known is not base:
            rows = self._rows
            self.forget()
            self._base, self._rows = ref(base), rows
        self._look(copied or [tensor], base)

    def _array_around(self, tensor: Any, frame: FrameType | None, known: Any) -> Any:
        """The array that it is a slice of: memory that is not torch's own does not change its size."""
        lies = dataset_memory.extent(tensor)
        if lies is None or tensor.untyped_storage().resizable():
            return None
        if known is not None and _is_within(lies, known):
            return known
        self._searches += 1
        held = _held(frame) if is_due(self._searches) else ()
        return next((thing for thing in held if _is_within(lies, thing)), None)

    def _look(self, given: list[Any], base: Any) -> None:
        """A batch, or some of its rows."""
        self.looks += 1
        for tensor in given:
            place = tensor.storage_offset() if dataset_memory.is_tensor(base) else tensor.data_ptr()
            with torch.no_grad():
                now = _some(tensor)
                self._came((place, tensor.numel()), now)
        if dataset_memory.is_tensor(base):
            self._used = (tensor.shape, tensor.stride(), tensor.storage_offset()), now
        else:
            lies = dataset_memory.extent(tensor)
            self._used = ((lies.begin, lies.end), dataset_memory.read(lies)) if lies is not None else None
        self._state = _state(base)
        others = self.other / 2 if self._rows.found else 2 * self.other  # what is left of a row may not be much
        if self.again < max(MIN_AGAIN, self.same, others) or self.altered:
            return
        if self.kept >= MIN_KEPT:
            self._tell(base)
        elif self._tries < MOST_TRIES:
            self._tries += 1
            self._line.follow(sys._getframe(), frozenset((id(base), *self._rows.also)))

    def _came(self, key: tuple[int, int], now: Any) -> None:
        before = self._places.pop(key, None)
        if before is not None:
            if float((now - before).norm()) <= MIN_CHANGE * float(before.norm()):
                self.same += 1
            elif self._is_same_data(before, now):
                self.again += 1
                most = int((now - before).abs().argmax())
                self._numbers = float(before[most]), float(now[most])
            else:
                self.other += 1
        if len(self._places) < MOST_PLACES:
            self._places[key] = now

    def _is_same_data(self, before: Any, now: Any) -> bool:
        others = [other for other in islice(self._places.values(), COMPARED) if other.shape == now.shape]
        usual = max((_alike(other, now) for other in others), default=0.0)
        return _alike(before, now) >= max(MIN_ALIKE, usual + MIN_MORE_ALIKE)

    def _is_written(self) -> bool:
        """Since the last batch was used, the tensor has changed."""
        base = self._base() if self._base is not None else None
        if base is None or self._used is None or _state(base) == self._state:
            return False
        lies, given = self._used
        if dataset_memory.is_tensor(base):
            with torch.no_grad():
                self._stayed = bool(torch.equal(_some(base.detach().as_strided(*lies)), given))
        else:
            used = Extent(None, *lies)
            self._stayed = _is_within(used, base) and dataset_memory.read(used) == given
        return True

    def _end_of_step(self) -> None:
        """Where a step was followed: what was written to, as far as the line shows it."""
        self._line.leave()
        if self._used is None or self._line.site is None:
            return
        self.kept += self._stayed and not self._line.own
        self.altered += self._line.own or not self._stayed
        self.line, self._line.site = self._line.site, None

    def _tell(self, base: Any) -> None:
        self._told = True
        before, after = self._numbers or (None, None)
        journal.tell(
            RewrittenData(
                shape=_shape(base), looks=self.looks, places=len(self._places), again=self.again, same=self.same,
                kept=self.kept, copied=self._rows.found, line=self.line, value_before=before, value_after=after,
                step=flight.steps(),
            )
        )  # fmt: skip


def _held(frame: FrameType | None) -> Iterator[Any]:
    """What functions of the user's have names for, and what that holds."""
    users = islice(script_lines.user_frames(frame), MOST_FRAMES)
    named = (pair for user in users for pair in script_lines.names_in(user).items())
    return (thing for _, thing in ObjectWalk(_inside, MOST_OBJECTS, DEPTH, MOST_SECONDS).over(named))


def _inside(thing: Any) -> Iterable[tuple[str, Any]]:
    return () if issubclass(type(thing), type) else held_by(thing, objects.SHORT)


def _is_within(lies: Extent, thing: Any) -> bool:
    """It is a part of this array."""
    around = None if dataset_memory.is_tensor(thing) else dataset_memory.extent(thing)
    return (
        around is not None
        and around.begin <= lies.begin
        and lies.end <= around.end
        and lies.end - lies.begin < around.end - around.begin
    )


def _state(base: Any) -> int | bytes | None:
    """What changes when it is written to."""
    if dataset_memory.is_tensor(base):
        return dataset_memory.version(base)
    lies = dataset_memory.extent(base)
    return None if lies is None else dataset_memory.read(lies, MOST_BYTES)


def _shape(base: Any) -> list[int]:
    shape = base.shape if dataset_memory.is_tensor(base) else sys.modules["numpy"].ndarray.shape.__get__(base)
    return [int(size) for size in shape]


def _some(tensor: Any) -> Any:
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, len(flat) // NUMBERS)][:NUMBERS].double().clone()


def _alike(one: Any, other: Any) -> float:
    """Their correlation, or the share of numbers that are equal."""
    first, second = one - one.mean(), other - other.mean()
    size = float(first.norm() * second.norm())
    return max(float((one == other).double().mean()), float(first @ second) / size if size else 0.0)
