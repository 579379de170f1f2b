"""A loss far above its usual level, with the samples its batch was made of. Loaded when there is one."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from ... import tensors
from ...records.numerics import DrawnBatch, LargeRows, Spike
from ..learning import losses
from ..learning.script_lines import names_in, user_frame

MAX_SPIKES = 12
LARGE_TIMES = 30.0  # the median row of its batch: heavy tails reach ten
MAX_INDICES = 512
MAX_TENSORS = 3
MAX_DEPTH = 3


def describe(
    series: losses.Series, value: float, step: int, batches: list[DrawnBatch], rows: list[LargeRows] | None
) -> Spike:
    batch = next((batch for batch in batches[:1] if batch.size is not None and batch.size <= MAX_INDICES), None)
    return Spike(
        step=step, value=value, usual=series.usual - losses.RATE * losses.FAR * series.spread, spread=series.spread,
        site=series.site, number=batch.number if batch is not None else None,
        indices=batch.indices if batch is not None else None, rows=rows,
    )  # fmt: skip


def large_rows(frame: FrameType | None) -> list[LargeRows]:
    """Rows of the batch's tensors that are far larger than the others, by name."""
    found: list[LargeRows] = []
    with torch.no_grad():
        for name, value in names_in(user_frame(frame)).items():
            for path, tensor in tensors.plain_tensors(value, MAX_DEPTH):
                rows = _of_tensor(f"{name}{path}", tensor) if len(found) < MAX_TENSORS and _is_batch(tensor) else None
                if rows is not None:
                    found.append(rows)
    return found


def _is_batch(tensor: Any) -> bool:
    plain = tensor.is_cpu and not tensor.requires_grad and tensor.is_floating_point()
    return bool(plain and tensor.dim() and 4 <= tensor.shape[0] <= 4096 and tensor.numel() <= 1 << 20)


def _of_tensor(path: str, tensor: Any) -> LargeRows | None:
    sizes = tensor.reshape(tensor.shape[0], -1).abs().amax(dim=1)
    usual = float(sizes.median())
    far = (sizes > LARGE_TIMES * usual).nonzero().flatten().tolist() if usual > 0 else []
    if not far or len(far) > max(1, tensor.shape[0] // 10):
        return None
    return LargeRows(name=path, rows=far[:6], largest=float(sizes.max()), usual=usual, shape=list(tensor.shape))
