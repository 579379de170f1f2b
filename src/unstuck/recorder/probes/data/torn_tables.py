"""Arrays that got another shape where their axes should have been exchanged: `reshape(n, m)` of m rows of n.

Such an array says so itself: neighbours in it have nothing to do with each other, those of the shape it was made from
do. Of sequences that a model is to continue, its targets say so: they follow from their neighbours in other sequences
of the batch, not from what came before them in their own.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from math import prod
from time import thread_time
from types import FrameType
from typing import Any

from ... import tensors
from ...records.learning import Torn
from ..learning import script_lines
from . import dataset_memory, dependence, reshape_lines

LOOK_AT = (2, 16)  # calls of the model at which the script's tables are looked at
MOST_FRAMES, MOST_TABLES, MOST_SECONDS = 3, 12, 0.02
MOST_READ, MIN_READ = 1 << 15, 2048  # numbers of a table
MIN_ROWS = 8  # of one whose shape alone says how it may have been before
MOST_CHANNELS = 4
MIN_INFORMATION, MIN_TIMES = 0.05, 3.0  # nats between neighbours of the former shape; compared with those of its own:
MIN_TIMES_IMAGE = 1.5  # of an image the next row is three times as near as it seems, and never further away
MOST_TARGETS, MOST_KEPT, MIN_LANES = 32, 1 << 12, 4  # of steps; numbers of each; sequences in a batch


class TornTables:
    def __init__(self) -> None:
        self.found: Torn | None = None
        self._looks = 0
        self._files: list[str] = []
        self._given: weakref.ref[Any] | None = None
        self._targets: list[Any] = []  # codes of what is to come, with the axis of time first

    def given(self, arguments: Any, frame: FrameType | None) -> None:
        """What the model is called with, in a step that is looked at."""
        found = [tensor for _, tensor in tensors.plain_tensors(arguments) if tensor.dim() > 1]
        self._given = weakref.ref(found[0]) if found else None
        self._looks += 1
        if self._looks not in LOOK_AT or self.found is not None:
            return
        self._files = [user.f_code.co_filename for user in script_lines.user_frames(frame)]
        until = thread_time() + MOST_SECONDS
        try:
            for table, before, is_view in islice(_tables(arguments, frame), MOST_TABLES):
                self.found = _torn(table, before, is_view)
                if self.found is not None or thread_time() > until:
                    return
        except RuntimeError:  # one of many that vmap goes through at once
            return

    def take(self, target: Any) -> None:
        """Of a loss: is it what the model was given, one step on?"""
        given, self._given = self._given() if self._given is not None else None, None
        if given is None or given.numel() != target.numel() or len(self._targets) >= MOST_TARGETS:
            return
        if given.dtype != target.dtype or not tensors.readable(given) or not tensors.readable(target):
            return
        now, coming = given.detach(), target.detach().reshape(given.shape)
        for axis in (0, 1):
            steps, ahead = now.movedim(axis, 0), coming.movedim(axis, 0)
            many = steps.shape[0] > 1 and MIN_LANES <= steps.shape[1] <= MOST_KEPT
            try:
                if many and sys.modules["torch"].equal(ahead[:-1], steps[1:]):
                    self._targets.append(ahead[: max(2, MOST_KEPT // ahead.shape[1])].clone())
                    return
            except RuntimeError:  # one of many that vmap goes through at once
                return

    def record(self) -> Torn | None:
        torn = self.found or self._lanes()
        if torn is None or torn.site is not None:
            return torn
        files = [*self._files, *script_lines.user_files(None)]
        of_one = torn.shape[1:]
        shapes = [torn.shape] if len(of_one) == 1 else [[-1, *of_one], of_one]
        for shape in shapes:
            site = reshape_lines.find(files, shape, torn.how == "lanes")
            if site is not None:
                return replace(torn, site=site)
        return None

    def _lanes(self) -> Torn | None:
        torch = sys.modules["torch"]
        alike = [each for each in self._targets if each.shape == self._targets[0].shape]
        if not alike or alike[0].dim() != 2:
            return None
        steps = torch.stack(alike)  # (looks, time, lanes)
        steps = dependence.codes(steps.reshape(-1)).reshape(steps.shape)
        beside = steps[:, :, :-1].reshape(-1), steps[:, :, 1:].reshape(-1)
        next_ = steps[:, :-1].reshape(-1), steps[:, 1:].reshape(-1)
        wrapped = steps[:, :-1, -1].reshape(-1), steps[:, 1:, 0].reshape(-1)
        own, other = dependence.shared(*next_), dependence.shared(*beside)
        if other < MIN_INFORMATION or other < MIN_TIMES * own:
            return None
        if dependence.fits(wrapped, beside) < other / 2:
            return None  # rows are beside each other, but do not go on
        return Torn(how="lanes", shape=[-1, int(steps.shape[2])], own=own, other=other, pairs=int(beside[0].numel()))


def _tables(arguments: Any, frame: FrameType | None) -> Iterator[tuple[Any, tuple[int, ...], bool]]:
    """Each as a tensor, with the shape that it may have had before; whether it is a view of what has that shape."""
    seen: set[tuple[int, tuple[int, ...]]] = set()
    rows: dict[int, int] = {}  # of a table of which only rows are held: where the last of them begins
    things = [tensor for _, tensor in tensors.plain_tensors(arguments)]
    for user in islice(script_lines.user_frames(frame), MOST_FRAMES):
        things += [lies.thing for _, lies in dataset_memory.held(script_lines.names_in(user), set())[0]]
    for thing in things:
        tensor, before = _of_tensor(thing, rows) if dataset_memory.is_tensor(thing) else _of_array(thing)
        if tensor is None or not 2 <= tensor.dim() <= 4 or tensor.numel() < MIN_READ or not tensors.readable(tensor):
            continue
        shape, lies = tuple(tensor.shape), dataset_memory.extent(tensor)
        is_view = before != shape and sorted(before) == sorted(shape)
        before = before if is_view else _former(shape)
        if lies is not None and before and tensor.is_contiguous() and (lies.begin, shape) not in seen:
            seen.add((lies.begin, shape))
            yield tensor.detach(), before, is_view


def _of_tensor(tensor: Any, rows: dict[int, int]) -> tuple[Any, tuple[int, ...]]:
    base = tensor._base
    if tensor.requires_grad:
        return None, ()
    if base is None or not base.is_contiguous():
        return tensor, ()
    if tensor.dim() == 1 and base.dim() == 2 and tensor.numel() == base.shape[0] > base.shape[1]:
        begins = int(tensor.storage_offset())
        is_row = tensor.is_contiguous() and begins % len(tensor) == base.storage_offset() == 0
        if is_row and rows.setdefault(base.data_ptr(), begins) != begins:
            return base.view(base.shape[1], base.shape[0]), tuple(base.shape)
    if tensor.dim() == base.dim() and not tensor.is_contiguous():
        return base, ()  # a part of it
    return tensor, tuple(base.shape)


def _of_array(array: Any) -> tuple[Any, tuple[int, ...]]:
    kind = sys.modules["numpy"].ndarray
    if type(array) is not kind:
        return None, ()
    flags, dtype, base = (slot.__get__(array) for slot in (kind.flags, kind.dtype, kind.base))
    if not flags.writeable or not flags.c_contiguous or dtype.kind not in "fi" or not dtype.isnative:
        return None, ()
    return sys.modules["torch"].from_numpy(array), kind.shape.__get__(base) if type(base) is kind else ()


def _torn(table: Any, before: tuple[int, ...], is_view: bool) -> Torn | None:
    shape = tuple(int(size) for size in table.shape)
    flat = dependence.codes(table.reshape(-1)[:MOST_READ])
    lags, former = _lags(shape), _lags(before)
    new, common = former.keys() - lags, {max(lags), 1} & former.keys()  # to the next sample, and within a point
    own_lags = {lag for lag, rows in lags.items() if rows >= MIN_ROWS} - common
    is_image = len(new) > 1  # rows and columns; what comes next is another channel of the same point, or its neighbour
    if not is_image and shape[-1] != before[-1]:
        own_lags.add(1)
    own = max((dependence.at_lag(flat, lag) for lag in own_lags), default=0.0)
    other = min((dependence.at_lag(flat, lag) for lag in new), default=0.0)
    if other < MIN_INFORMATION or other < (MIN_TIMES_IMAGE if is_image else MIN_TIMES) * own:
        return None
    if is_image and other < dependence.at_lag(flat, 1):
        return None
    return Torn(
        how="view" if is_view else "reshaped", shape=list(shape), before=list(before), own=own, other=other,
        pairs=int(flat.numel()),
    )  # fmt: skip


def _former(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of a table the other way round; of images channels last."""
    if len(shape) == 2 and min(shape) >= MIN_ROWS and shape[0] != shape[1]:
        return shape[1], shape[0]
    if len(shape) == 4 and 1 < shape[1] <= MOST_CHANNELS and min(shape[2:]) >= MIN_ROWS:
        return shape[0], shape[2], shape[3], shape[1]
    return ()


def _lags(shape: tuple[int, ...]) -> dict[int, int]:
    """How far apart neighbours along each axis lie, and how many these are."""
    return {prod(shape[place + 1 :]): shape[place] for place in range(len(shape)) if shape[place] > 1}
