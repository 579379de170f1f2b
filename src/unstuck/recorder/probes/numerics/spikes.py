"""A loss far above its usual level: noted with the samples that its batch was made of, while they are at hand."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from ... import flight, loading, tensors
from ...records.numerics import DrawnBatch, LargeRows, Spike
from ..learning import losses, sites

MOST = 12
UNLIKE = 30.0
"""Times the median row of its batch: heavy tails reach ten."""
IDS = 512
TENSORS = 3
DEEP = 3


class Spikes:
    def __init__(self) -> None:
        self.found: list[Spike] = []

    def note(self, series: losses.Series, value: float, frame: FrameType | None) -> None:
        """A value that stands out, before its backward pass."""
        if len(self.found) < MOST:
            self._add(series, value, flight.steps(), loading.batches(), _unlike(frame))

    def came_late(self, series: losses.Series, value: float, step: int, batch: list[DrawnBatch] | None) -> None:
        """One that stood out some steps ago; its batch was noted then, if there was one at hand."""
        if len(self.found) < MOST:
            self._add(series, value, step, batch or [], None)

    def _add(
        self, series: losses.Series, value: float, step: int, batch: list[DrawnBatch], rows: list[LargeRows] | None
    ) -> None:
        known = next((each for each in batch[:1] if each.size is not None and each.size <= IDS), None)
        spike = Spike(
            step=step, value=value, usual=series.usual - losses.RATE * losses.FAR * series.spread, spread=series.spread,
            site=series.site, number=known.number if known is not None else None,
            indices=known.indices if known is not None else None, rows=rows,
        )  # fmt: skip
        self.found.append(spike)


def _unlike(frame: FrameType | None) -> list[LargeRows]:
    """Rows of the batch's tensors that are far larger than the others, by name."""
    found: list[LargeRows] = []
    with torch.no_grad():
        for name, value in sites.names(sites.user_frame(frame)).items():
            for path, tensor in tensors.plain_tensors(value, DEEP):
                rows = _large_rows(f"{name}{path}", tensor) if len(found) < TENSORS and _is_batch(tensor) else None
                if rows is not None:
                    found.append(rows)
    return found


def _is_batch(tensor: Any) -> bool:
    plain = tensor.is_cpu and not tensor.requires_grad and tensor.is_floating_point()
    return bool(plain and tensor.dim() and 4 <= tensor.shape[0] <= 4096 and tensor.numel() <= 1 << 20)


def _large_rows(path: str, tensor: Any) -> LargeRows | None:
    sizes = tensor.reshape(tensor.shape[0], -1).abs().amax(dim=1)
    usual = float(sizes.median())
    far = (sizes > UNLIKE * usual).nonzero().flatten().tolist() if usual > 0 else []
    if not far or len(far) > max(1, tensor.shape[0] // 10):
        return None
    return LargeRows(name=path, rows=far[:6], largest=float(sizes.max()), usual=usual, shape=list(tensor.shape))
