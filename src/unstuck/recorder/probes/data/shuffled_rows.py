"""What `random.shuffle` does to the rows of an array or tensor: are all still there, or some twice and others lost?"""

from __future__ import annotations

import ctypes
from collections import Counter
from types import FrameType
from typing import Any

from ... import flight, journal, user_code
from ...probe import Probe, is_due
from ...records import Site
from ...records.data import LostRows
from . import dataset_memory

MOST_ROWS, MOST_BYTES = 1 << 15, 1 << 24  # of one that is compared
MOST_SITES = 8


class ShuffledRows(Probe):
    name = "shuffles"

    def forget(self) -> None:
        self._calls = 0
        self._first: dict[Site | None, int] = {}  # different rows before the first call

    def rows(self, thing: Any) -> Counter[bytes] | None:
        """Each with how often it is there; None where the elements are numbers, or too many, or it is not its turn."""
        self._calls += 1
        return _rows(thing) if is_due(self._calls) else None

    def rows_shuffled(self, thing: Any, before: Counter[bytes], frame: FrameType) -> None:
        site = user_code.site_of(frame)
        after = _rows(thing)
        if after is None or (site not in self._first and len(self._first) >= MOST_SITES):
            return
        first = self._first.setdefault(site, len(before))
        lost = sum((before - after).values())
        if lost:
            journal.tell(
                LostRows(
                    site=site, shape=[int(size) for size in thing.shape], tensor=dataset_memory.is_tensor(thing),
                    calls=self._calls, lost=lost, different=first, left=len(after), step=flight.steps(),
                )
            )  # fmt: skip


def _rows(thing: Any) -> Counter[bytes] | None:
    tensor = dataset_memory.is_tensor(thing)
    shape = [int(size) for size in thing.shape]
    if len(shape) < (1 if tensor else 2) or not 0 < shape[0] <= MOST_ROWS:
        return None
    lies = dataset_memory.extent(thing)
    size = lies.end - lies.begin if lies is not None else 0
    if lies is None or size > MOST_BYTES or not (thing.is_contiguous() if tensor else thing.flags.c_contiguous):
        return None
    raw, width = ctypes.string_at(lies.begin, size), size // shape[0]
    return Counter(raw[begin : begin + width] for begin in range(0, size, width))
