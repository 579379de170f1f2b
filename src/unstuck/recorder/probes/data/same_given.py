"""Whether what the model gets is the same in every step, where a script makes its batches itself.

A tensor that the model gets again and again is meant to be: only batches that are made anew, with the same contents,
count, and only where the code of the loop shows that another one was meant each time. Where it draws them, but seeds
nothing, the lines of a step are followed: one may seed the global generator that they are drawn with.
"""

from __future__ import annotations

import linecache
import sys
from ctypes import c_char
from dataclasses import replace
from types import FrameType
from typing import Any
from weakref import ref

from ... import flight, journal, loading, tensors, user_code
from ...probe import Probe
from ...records.loops import SameGiven
from . import global_generators
from .writing_line import WritingLine

MOST_PLACES = 8  # at which a model is called
MOST_LEAVES = 4  # tensors of a batch
MOST_ROWS = 8  # samples of a batch that are compared
MOST_BYTES = 4096  # of these
MIN_SAME = 3  # batches in a row like the one before: that they are alike is no chance, and the code says why
MOST_TRIES = 6  # steps that are followed


class Given:
    """What was given at one place."""

    def __init__(self) -> None:
        self.print: Any = None
        self.tensors: list[Any] = []
        self.same, self.first, self.step = 0, 0, -1
        self.record: SameGiven | None = None


class SameBatches(Probe):
    name = "same batches"
    governed = frozenset(("graph_given", "rows_asked"))  # the other comes in a few steps only

    def __init__(self) -> None:
        self._line = WritingLine(self.name, self._is_seeded)
        self.forget()

    def forget(self) -> None:
        self._line.leave()
        self._places: dict[Any, Given] = {}
        self._step, self._calls = -1, 0
        self._drawn: Given | None = None  # by code that seeds nothing
        self._fresh: frozenset[str] = frozenset()  # generators that nobody had drawn from when the lines were followed
        self._tries = 0

    def remove(self) -> None:
        self._line.leave()

    last = remove

    def missed(self, event: str) -> None:
        self._line.leave()

    def model_given(self, arguments: tuple[Any, ...], frame: FrameType | None) -> None:
        if sys.modules["torch"].is_grad_enabled():
            self._look(arguments, frame)

    def graph_given(self, tensor: Any, frame: FrameType | None, plain: bool) -> None:
        self._end_of_step()
        if plain:
            self._look(tensor, frame)
        self._follow()

    def rows_asked(self, numbers: list[Any], frame: FrameType | None) -> None:
        self._end_of_step()
        self._look(numbers, frame)
        self._follow()

    def _look(self, batch: Any, frame: FrameType | None) -> None:
        if loading.everything():
            return
        step = flight.steps()
        self._calls = self._calls + 1 if step == self._step else 0
        self._step = step
        key = user_code.site_of(frame), self._calls
        known = self._places.get(key)
        if known is None:
            if len(self._places) >= MOST_PLACES:
                return
            known = self._places[key] = Given()
        found = [leaf for _, leaf in tensors.plain_tensors(batch)][:MOST_LEAVES]
        self._compare(known, found, frame, key[0])

    def _compare(self, known: Given, found: list[Any], frame: FrameType | None, site: Any) -> None:
        new = not any(old() is tensor for old in known.tensors for tensor in found)
        shown = tuple(map(_print, found))
        step = flight.steps()
        if not found or None in shown or shown != known.print or not new:
            if known.record is not None and known.record.same:
                journal.tell(SameGiven(site=site, step=step))
            known.record, known.same, known.first = None, 0, step
            self._drawn = None if self._drawn is known else self._drawn
        elif step > known.step:
            known.same += 1
            if known.same >= MIN_SAME and not (known.same + 1) & known.same:
                self._tell(known, int(found[0].shape[0]), frame, site)
        known.print, known.step, known.tensors = shown, step, [ref(tensor) for tensor in found]

    def _tell(self, known: Given, rows: int, frame: FrameType | None, site: Any) -> None:
        from ..loops import batch_maker

        made = batch_maker.remade(frame, rows)
        if made is None and self._tries < MOST_TRIES:
            made = batch_maker.drawing(frame, rows)
        if made is None:
            return
        known.record = SameGiven(
            site=site, same=known.same, rows=rows, first=known.first, step=flight.steps(), remade=made
        )
        if made.how == "reset":
            self._drawn = known
        else:
            journal.tell(known.record)

    # --- the line that seeds -----------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """The numbers of this step are drawn: what is seeded from here on is seeded for those of the next."""
        if self._drawn is not None and self._tries < MOST_TRIES:
            self._tries += 1
            self._fresh = global_generators.fresh()
            self._line.follow(sys._getframe(), frozenset())

    def _is_seeded(self) -> bool:
        return bool(global_generators.fresh() - self._fresh)

    def _end_of_step(self) -> None:
        followed, known, site = self._line.leave(), self._drawn, self._line.site
        if not followed or site is None or known is None or known.record is None:
            return
        self._drawn = None
        text = linecache.getline(*site[:2]).strip()[:120]
        known.record = replace(known.record, remade=replace(known.record.remade, text=text, site=site))
        journal.tell(known.record)


def _print(tensor: Any) -> int | None:
    """Of its first rows; None where it cannot be read, has a gradient, or is the same number everywhere."""
    torch = sys.modules["torch"]
    if tensor.layout is not torch.strided or not tensors.readable(tensor) or tensor.requires_grad or not tensor.dim():
        return None
    with torch.no_grad():
        some = tensor[:MOST_ROWS].contiguous()
    count = some.numel() * some.element_size()
    try:
        if not count or not some.data_ptr():
            return None
    except RuntimeError:  # one of many that vmap goes through at once
        return None
    raw: bytes = (c_char * count).from_address(some.data_ptr())[:: max(1, count // MOST_BYTES) | 1]
    return None if raw.count(raw[:1]) == len(raw) else hash((raw, tuple(tensor.shape)))
