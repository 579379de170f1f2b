"""Of which tensor or array that the script holds are the rows of a batch copies?"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import torch

from ...probe import is_due
from . import dataset_memory

MOST_WANTED, MOST_SEEN = 32, 1 << 15
"""Rows of a batch that are looked for: so many, and no more than make so many comparisons; but two at least."""
MIN_ROW = 8  # numbers of one
MOST_ROWS = 1 << 17  # of what is held
MOST_THINGS = 8  # of that size, in which they are looked for
MOST_ALIKE = 32  # rows with one number in common


class CopiedRows:
    def __init__(self) -> None:
        self.found = False
        self.also: frozenset[int] = frozenset()  # ids of what else lies in that memory
        self._searches = 0

    def find(self, batch: Any, held: Iterable[Any], known: Any) -> tuple[Any, list[Any]]:
        """What the rows are copies of, and these rows there. `known`: what it was before."""
        count = int(batch.shape[0]) if batch.dim() > 1 else 0
        if not count or batch.numel() < count * MIN_ROW or not batch.is_contiguous():
            return None, []
        with torch.no_grad():
            wanted = batch.detach().reshape(count, -1)
            if known is not None:
                copies = self._copies(known, wanted, count) if self.found else []
                return (known, copies) if copies else (None, [])
            self._searches += 1
            if not is_due(self._searches):
                return None, []
            things = [thing for thing in held if _rows(thing, wanted, count) is not None][:MOST_THINGS]
            for thing in things:
                if copies := self._copies(thing, wanted, count):
                    self.found = True
                    self.also = frozenset(id(other) for other in things if _overlap(thing, other))
                    return thing, copies
        return None, []

    def _copies(self, thing: Any, wanted: Any, count: int) -> list[Any]:
        rows = _rows(thing, wanted, count)
        if rows is None:
            return []
        most = max(2, min(MOST_WANTED, MOST_SEEN // len(rows)))
        return [row for each in wanted[:most] if (row := _equal(rows, each)) is not None]


def _rows(thing: Any, wanted: Any, count: int) -> Any:
    """Its rows, where they are as long as those, and more."""
    numpy = sys.modules.get("numpy")
    if dataset_memory.is_tensor(thing):
        plain = not thing.requires_grad and thing.is_cpu and thing.layout is torch.strided
    else:
        plain = numpy is not None and type(thing) is numpy.ndarray and thing.flags.writeable
    if not plain or len(shape := thing.shape) < 2 or not count < shape[0] <= MOST_ROWS:
        return None
    lies = dataset_memory.extent(thing)
    if lies is None or lies.end - lies.begin != shape[0] * wanted[0].numel() * wanted.element_size():
        return None
    if dataset_memory.is_tensor(thing):
        rows = thing.detach()
    elif str(thing.dtype) != str(wanted.dtype).rpartition(".")[2]:
        return None
    else:
        rows = torch.from_numpy(thing)
    return rows.view(shape[0], -1) if rows.dtype == wanted.dtype and rows.is_contiguous() else None


def _equal(rows: Any, wanted: Any) -> Any:
    at = int(wanted.double().abs().argmax())
    alike = (rows[:, at] == wanted[at]).nonzero().flatten()[:MOST_ALIKE].tolist()
    return next((rows[place] for place in alike if torch.equal(rows[place], wanted)), None)


def _overlap(one: Any, other: Any) -> bool:
    first, second = dataset_memory.extent(one), dataset_memory.extent(other)
    return first is not None and second is not None and first.begin < second.end and second.begin < first.end
