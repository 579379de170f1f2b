"""Inputs and targets of all samples, where a script holds both as tables and draws its batches itself: whether they
would fit in another order."""

from __future__ import annotations

import sys
from _weakref import ref
from collections.abc import Iterator
from itertools import islice
from types import FrameType
from typing import Any

from ... import tensors
from ...records.data import Relation
from ..learning import script_lines
from . import bounded_rows, dataset_memory, relation
from .part import Part, laid_out
from .summary import Summary

LOOK_AT = (2, 16)  # calls of the model at which the script's tables are looked for
MOST_FRAMES, MOST_TABLES, MOST_PAIRS = 3, 64, 4
MOST_ROWS, AT_ONCE = 4096, 256  # of a table that are read
COMPARED = 256  # samples that the model got
MIN_AGREEMENT = 6.0  # standard deviations: each has the target that the tables give it


class OwnTables:
    def __init__(self) -> None:
        self._looks = 0
        self._things: dict[int, ref[Any]] = {}  # by where it begins
        self.found: Relation | None = None

    def look(self, frame: FrameType | None) -> None:
        """The model is called, in a step that is looked at."""
        self._looks += 1
        if self._looks not in LOOK_AT:
            return
        try:
            for user in islice(script_lines.user_frames(frame), MOST_FRAMES):
                for _, lies in dataset_memory.held(script_lines.names_in(user), set())[0]:
                    if len(self._things) < MOST_TABLES:
                        self._things.setdefault(lies.begin, ref(lies.thing))
        except RuntimeError:  # one of many that vmap goes through at once
            return

    def relation(self, given: tuple[Part, Any], target: tuple[Part, Any], classes: bool) -> Relation | None:
        """Of what the model is given and its target, each with the rows of it that were kept."""
        if self.found is None:
            held = [thing for each in self._things.values() if (thing := each()) is not None]
            self._things = {begin: each for begin, each in self._things.items() if each() is not None}
            pairs = islice(_pairs(held, given[0], target[0]), MOST_PAIRS)
            found = (_relation(*pair, given, target[1], classes) for pair in pairs)
            self.found = next((each for each in found if each is not None), None)
        return self.found


def _pairs(held: list[Any], given: Part, target: Part) -> Iterator[tuple[Any, Any]]:
    """Tables of such rows, with as many of each, the longest first."""
    targets = [table for thing in held if (table := _whole(thing, target.shape, target.floats)) is not None]
    found = [table for thing in held if (table := _whole(thing, given.shape, None)) is not None]
    for table in sorted(found, key=len, reverse=True):
        for other in targets:
            if len(other) == len(table) and other.data_ptr() != table.data_ptr():
                yield table, other


def _whole(thing: Any, shape: list[int], floats: bool | None) -> Any:
    """All of a table with rows of this shape, also where the script holds a part of it."""
    numpy, torch = sys.modules.get("numpy"), sys.modules["torch"]
    if not dataset_memory.is_tensor(thing):
        kind = numpy.ndarray if numpy is not None else None
        if type(thing) is not kind:
            return None
        base = kind.base.__get__(thing)
        thing = base if type(base) is kind and kind.size.__get__(base) >= kind.size.__get__(thing) else thing
        flags, dtype = kind.flags.__get__(thing), kind.dtype.__get__(thing)
        if not flags.writeable or not flags.c_contiguous or dtype.kind not in "fi" or not dtype.isnative:
            return None
        thing = torch.from_numpy(thing)
    elif not tensors.readable(thing) or thing.requires_grad:
        return None
    if [size for size in thing.shape[1:] if size > 1] != [size for size in shape if size > 1] or not thing.dim():
        return None
    own = dataset_memory.base_of(thing)
    whole = own if own is not None and own.is_contiguous() and own.dtype is thing.dtype else thing
    width = max(1, int(thing[:1].numel()))
    if not whole.is_contiguous() or whole.numel() % width or thing.storage_offset() % width:
        return None
    rows = whole.numel() // width
    fits = relation.MIN_ROWS <= rows <= relation.MAX_REORDERED and floats in (None, whole.is_floating_point())
    return whole.detach().reshape(rows, *shape) if fits else None


def _relation(inputs: Any, targets: Any, given: tuple[Part, Any], target: Any, classes: bool) -> Relation | None:
    torch = sys.modules["torch"]
    part, kept = given
    total = len(inputs)
    rows = bounded_rows.chosen(total, MOST_ROWS)
    coarse = part.per_sample is not None
    if coarse:
        laid = laid_out(inputs, part.kind)
        table = torch.cat([Summary().of(laid[some]) for some in rows.split(AT_ONCE)])
        kept = kept[:, 2:]
    else:
        table = inputs[rows].double()
    answers = targets[rows].reshape(len(rows), -1).double()
    if table.shape[1] != kept.shape[1] or answers.shape[1] != 1:
        return None
    good = torch.isfinite(table).all(1)
    few, own = kept[:COMPARED], table[good]
    nearest = torch.cdist(_alike(few), _alike(own)).argmin(1)
    if relation.agreement(target[:COMPARED, 0], answers[good][nearest, 0], classes) < MIN_AGREEMENT:
        return None  # the script pairs them in another way
    return relation.relation(table, answers, rows, classes, total, coarse)


def _alike(table: Any) -> Any:
    """Whatever scale and offset its columns were given on the way to the model."""
    return (table - table.mean(0)) / table.std(0).clamp_min(1e-12)
