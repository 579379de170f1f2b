"""Views in the model that give the sizes of their axes another order: `x.view(t, b, h)` of what is (b, t, h).

Every number stays in its place, so rows of the result have parts of several samples. Where one length is a multiple of
the other, rows may be parts on purpose: then only the source says what was meant.
"""

from __future__ import annotations

import weakref
from itertools import pairwise
from math import prod
from types import FrameType
from typing import Any

from ... import gpu
from ...records.learning import Torn
from . import graph_reading, script_lines

MOST_LOOKS, MOST_VIEWS, MOST_GIVEN = 24, 64, 64
SIZES = "_saved_self_sym_sizes"


class ExchangedViews:
    def __init__(self) -> None:
        self._looks = 0
        self._files: list[str] = []
        self._found: tuple[list[int], list[int]] | None = None
        self._straddling: tuple[list[int], list[int]] | None = None
        self._given: dict[int, weakref.ref[Any]] = {}  # by address: what modules were called with in a step

    def look(self, views: list[Any], frame: FrameType | None) -> None:
        """Nodes of a graph."""
        self._given.clear()
        if self._looks < MOST_LOOKS:
            self._looks += 1
            self._files = self._files or [user.f_code.co_filename for user in script_lines.user_frames(frame)]
            for node in views[:MOST_VIEWS]:
                self._note(getattr(node, SIZES, None), graph_reading.shape_of(node))

    def given(self, found: list[Any]) -> None:
        """A module is called with these, in a step that is watched closely."""
        for tensor in found:
            if len(self._given) >= MOST_GIVEN or tensor.dim() < 2 or not gpu.plain(tensor):
                continue
            try:
                address = tensor.data_ptr() if tensor.is_contiguous() else 0
            except RuntimeError:  # one of many that vmap goes through at once
                continue
            known = self._given.setdefault(address, weakref.ref(tensor))() if address else None
            if known is not None and known is not tensor and known.data_ptr() == address:
                self._note(known.shape, tensor.shape)

    def _note(self, before: Any, shape: Any) -> None:
        if before is None or shape is None or len(before) < 2:
            return
        before, shape = ([int(size) for size in sizes if size != 1] for sizes in (before, shape))
        if before != shape and sorted(before) == sorted(shape):
            self._found = self._found or (before, shape)
            if self._straddling is None and _straddles(before, shape):
                self._straddling = before, shape

    def record(self) -> Torn | None:
        if self._found is None:
            return None
        from ..data import reshape_lines

        files = [*self._files, *script_lines.user_files(None)]
        (before, shape), site = self._found, reshape_lines.exchanging(files)
        if self._straddling is not None:
            before, shape = self._straddling
            site = site or reshape_lines.find(files, shape)
        return None if site is None else Torn(how="mixed", shape=shape, before=before, site=site)


def _straddles(before: list[int], shape: list[int]) -> bool:
    """A row of one of the two begins in the middle of a row of the other."""
    ends = sorted({prod(sizes[place:]) for sizes in (before, shape) for place in range(len(sizes))})
    return any(longer % shorter for shorter, longer in pairwise(ends))
