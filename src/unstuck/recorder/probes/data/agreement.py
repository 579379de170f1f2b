"""Whether what a model gets has anything of its target in it, where both have the same elements: of a denoiser's input
the noise is a part. Where nothing is found, whether the source draws the target and computes nothing from it.
"""

from __future__ import annotations

import sys
import weakref
from math import isfinite
from types import FrameType
from typing import Any

from ... import gpu, tensors
from ...records import Site
from ...records.data import Agreement
from ..learning import script_lines
from . import made_up

MOST_GIVEN = 4  # tensors that a model gets
MOST_ELEMENTS = 1 << 15  # of a batch
MIN_ROWS = 64  # in all: fewer show nothing
MAX_BY_CHANCE = 3.0  # standard deviations


class Agreements:
    """Between the rows of what a model gets and those of its target, over the steps that are watched closely."""

    def __init__(self) -> None:
        self._given: list[weakref.ref[Any]] = []
        self._files: list[str] = []  # in which the model is called: at the end of the process the script's name is gone
        self._rows = 0
        self._sums = [0.0, 0.0]
        self._is_read = False  # how the script makes the target,
        self._drawn: Site | None = None  # and what was found

    def given(self, arguments: Any, frame: FrameType | None) -> None:
        if not self._files:
            self._files = [caller.f_code.co_filename for caller in script_lines.user_frames(frame)]
        found = [tensor for _, tensor in tensors.plain_tensors(arguments) if tensor.is_floating_point()]
        self._given = [weakref.ref(tensor) for tensor in found[:MOST_GIVEN]]

    def take(self, target: Any) -> None:
        given, self._given = self._given, []
        for tensor in (tensor for ref in given if (tensor := ref()) is not None):
            if target.is_floating_point() and target.dim() > 1 and tensor.dim() == target.dim() and gpu.near(tensor):
                parts = _parts(tensor.detach(), target.detach())
                if parts:
                    found = [_agreement(part, target.detach()) for part in parts]
                    self._add(*max(found, key=lambda sums: max(map(abs, sums[:2]))))
                    return

    def _add(self, whole: float, squares: float, rows: int) -> None:
        if isfinite(whole) and isfinite(squares):
            self._sums = [self._sums[0] + whole, self._sums[1] + squares]
            self._rows += rows

    def record(self) -> Agreement | None:
        if self._rows < MIN_ROWS:
            return None
        whole, by_row = self._sums[0] / self._rows**0.5, self._sums[1] / (2 * self._rows) ** 0.5
        if not self._is_read and max(abs(whole), by_row) < MAX_BY_CHANCE:
            self._is_read = True
            self._drawn = made_up.only_target([*self._files, *script_lines.user_files(None)])
        return Agreement(rows=self._rows, whole=whole, by_row=by_row, drawn=self._drawn)


def _parts(tensor: Any, target: Any) -> list[Any]:
    """The tensor, if it has the target's shape; if it has more columns or channels, the first and the last of them."""
    if tensor.shape[0] != target.shape[0] or tensor.shape[2:] != target.shape[2:]:
        return []
    width, own = int(target.shape[1]), int(tensor.shape[1])
    return [tensor] if own == width else [tensor[:, :width], tensor[:, own - width :]] if own > width else []


def _agreement(tensor: Any, target: Any) -> tuple[float, float, int]:
    """Sums over some rows: of how much each agrees with its target, and of the square of that; and how many these are.
    By chance both sums are 0, with the root of that number as the deviation, and the root of twice that."""
    torch = sys.modules["torch"]
    thin = slice(None, None, -(-int(target.numel()) // MOST_ELEMENTS))
    x, y = tensor[thin].flatten(1).double(), target[thin].flatten(1).double()
    cosines = torch.nn.functional.cosine_similarity(x, y) * float(x.shape[1]) ** 0.5
    return float(cosines.sum()), float((cosines * cosines - 1).sum()), int(x.shape[0])
