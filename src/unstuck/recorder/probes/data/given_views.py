"""Without a loader: are batches views of a tensor that lives on, and is each modified before every use?

Of each batch that meets the weights some numbers are kept, by its place in memory. Where places come again with the
same data changed, the lines of a few steps are followed: one that writes into the tensor, not under its own name, and
leaves the batch just used as it is, modifies batches on their way to the model. A buffer that is filled anew comes back
with other data, a state that is advanced changes after its use.
"""

from __future__ import annotations

import sys
from _weakref import ref
from itertools import islice
from types import FrameType
from typing import Any

import torch

from ... import flight, gpu, journal
from ...probe import Probe
from ...records import Site
from ...records.loaders import RewrittenData
from . import dataset_memory
from .writing_line import WritingLine

MOST_PLACES = 512
NUMBERS = 1024  # of each that are kept, spread over it
MIN_CHANGE = 0.01  # of its size, between two uses of a place; less is rounding
MIN_ALIKE = 0.5  # correlation, or share of equal numbers, of a place with what it was …
MIN_MORE_ALIKE = 0.2  # … and by so much more than with other places: batches of pictures are all alike a little
COMPARED = 8  # other places
MIN_AGAIN = 4  # places that came again changed; at least twice as many as came with other data
MIN_KEPT = 2  # steps followed in which a line wrote elsewhere than into the batch just used
MOST_TRIES = 6  # steps that are followed


class GivenViews(Probe):
    name = "views"

    def __init__(self) -> None:
        self._line = WritingLine(self.name, self._is_written)
        self.forget()

    def forget(self) -> None:
        self._line.leave()
        self._base: Any = None  # weakly: what the batches are views of
        self._version: int | None = None
        self._places: dict[tuple[int, int], Any] = {}  # by where it begins and its size: some of its numbers
        self._used: tuple[Any, Any] | None = None  # how the batch just used lies in it, and some of its numbers then
        self._stayed = False  # it was still that when the tensor was written to
        self.line: Site | None = None
        self.looks = self.again = self.other = self.same = self.kept = self.altered = self._tries = 0
        self._numbers: tuple[float, float] | None = None
        self._told = False

    def remove(self) -> None:
        self._line.leave()

    last = remove

    def graph_given(self, tensor: Any, _frame: FrameType, _plain: bool) -> None:
        self._end_of_step()
        base = dataset_memory.base_of(tensor)
        if self._told or base is None or not gpu.near(tensor) or tensor.is_complex() or base.requires_grad:
            return
        known = self._base() if self._base is not None else None
        if known is not base:
            self.forget()
            self._base = ref(base)
        self._look(tensor, base)

    def _look(self, tensor: Any, base: Any) -> None:
        self.looks += 1
        key = tensor.storage_offset(), tensor.numel()
        with torch.no_grad():
            now = _some(tensor)
            self._came(key, now)
        self._used = (tensor.shape, tensor.stride(), tensor.storage_offset()), now
        self._version = dataset_memory.version(base)
        if self.again < max(MIN_AGAIN, self.same, 2 * self.other) or self.altered:
            return
        if self.kept >= MIN_KEPT:
            self._tell(base)
        elif self._tries < MOST_TRIES:
            self._tries += 1
            self._line.follow(sys._getframe(), frozenset((id(base),)))

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
        if base is None or self._used is None or dataset_memory.version(base) == self._version:
            return False
        lies, given = self._used
        with torch.no_grad():
            self._stayed = bool(torch.equal(_some(base.detach().as_strided(*lies)), given))
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
                shape=[int(size) for size in base.shape], looks=self.looks, places=len(self._places), again=self.again,
                same=self.same, kept=self.kept, line=self.line, value_before=before, value_after=after,
                step=flight.steps(),
            )
        )  # fmt: skip


def _some(tensor: Any) -> Any:
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, len(flat) // NUMBERS)][:NUMBERS].double().clone()


def _alike(one: Any, other: Any) -> float:
    """Their correlation, or the share of numbers that are equal."""
    first, second = one - one.mean(), other - other.mean()
    size = float(first.norm() * second.norm())
    return max(float((one == other).double().mean()), float(first @ second) / size if size else 0.0)
