"""How much one number says about another one of the same array, in nats: by counting pairs, whatever they mean."""

from __future__ import annotations

import sys
from typing import Any

BINS = 16  # of values that are not few
MIN_PAIRS = 1000


def codes(flat: Any) -> Any:
    """Small whole numbers that stand for the values: each for itself where they are few, else by their order."""
    torch = sys.modules["torch"]
    if not flat.is_floating_point():
        low = int(flat.min())
        if int(flat.max()) - low < 2 * BINS:
            return flat.long() - low
    values = torch.nan_to_num(flat.double())
    edges = torch.quantile(values, torch.linspace(0, 1, BINS + 1, dtype=torch.float64, device="cpu")[1:-1])
    return torch.bucketize(values, edges.unique())


def shared(one: Any, other: Any) -> float:
    """Of codes in pairs: the information of one about the other, less what chance gives."""
    joint = _joint(one, other)
    total = float(joint.sum())
    if total < MIN_PAIRS:
        return 0.0
    rows, columns = joint.sum(1), joint.sum(0)
    there = joint > 0
    expected = rows[:, None] * columns[None, :] / total
    information = float((joint[there] * (joint[there] / expected[there]).log()).sum()) / total
    chance = (int((rows > 0).sum()) - 1) * (int((columns > 0).sum()) - 1) / (2 * total)
    return max(0.0, information - chance)


def at_lag(flat: Any, lag: int) -> float:
    return shared(flat[:-lag], flat[lag:]) if 0 < lag < flat.numel() else 0.0


def fits(pairs: tuple[Any, Any], known: tuple[Any, Any]) -> float:
    """What `known` pairs let expect of these, in nats a pair: above 0 where they are of the same kind."""
    joint = _joint(*known) + 0.1
    size = int(joint.shape[0])
    gain = (joint * joint.sum() / (joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True))).log()
    return float(gain[pairs[0].clamp(max=size - 1), pairs[1].clamp(max=size - 1)].mean()) if pairs[0].numel() else 0.0


def _joint(one: Any, other: Any) -> Any:
    torch = sys.modules["torch"]
    size = 1 + max(int(one.max()), int(other.max())) if one.numel() else 1
    return torch.bincount(one * size + other, minlength=size * size).reshape(size, size).double()
