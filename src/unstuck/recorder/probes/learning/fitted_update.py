"""The rate, momentum and weight decay of an update that the script writes out itself, from what it did to the weights.

Gradient descent moves weights by a multiple of their gradient, of themselves (decay) and of the move before (momentum).
Where such a sum explains the move, its factors are the settings, whatever the script calls them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

MAX_ELEMENTS = 1 << 18  # of a model, beyond which nothing is fitted
MAX_UNEXPLAINED = 0.05  # of the size of the move
MIN_MOMENTUM = 0.05
ROUNDING = 1e-7  # of the size of the weights: what single precision loses of a small move


class Fit(NamedTuple):
    rate: float
    momentum: float
    decay: float


def joined(parts: list[Any]) -> Any:
    return torch.cat([part.detach().reshape(-1).double() for part in parts])


def would_move(rate: float, gradient: Any, weight: Any, precision: float) -> bool:
    """At this rate the step would show in the weights: where nothing moves, the rate is gone, and it is not the
    gradient that has come to nothing."""
    return bool((rate * gradient.abs() > 10 * precision * weight.abs()).any())


def fit(moved: Any, gradient: Any, weight: Any, one_before: Any) -> Fit | None:
    """None: it is another kind of update. `one_before`: the move of the step before."""
    plain, error = _explained(moved, [gradient, weight])
    if one_before is not None and one_before.shape == moved.shape:
        again, left = _explained(moved, [gradient, weight, one_before.double()])
        if again is not None and again.momentum and left < 0.5 * error:
            return again
    return plain


def _explained(moved: Any, regressors: list[Any]) -> tuple[Fit | None, float]:
    """And the size of what these do not explain."""
    sizes = [float(torch.linalg.vector_norm(each)) for each in (moved, *regressors)]
    if not all(size > 0 and size - size == 0 for size in sizes[:3]):
        return None, float("inf")
    table = torch.stack([each / (size or 1.0) for each, size in zip(regressors, sizes[1:], strict=True)], 1)
    factors = torch.linalg.lstsq(table.T @ table, (table.T @ moved).unsqueeze(1), driver="gelsd").solution[:, 0]
    unexplained = float(torch.linalg.vector_norm(moved - table @ factors))
    if unexplained > MAX_UNEXPLAINED * sizes[0] + ROUNDING * sizes[2]:
        return None, unexplained
    along, shrunk, again, *_ = [*(float(f) / (size or 1.0) for f, size in zip(factors, sizes[1:], strict=True)), 0.0]
    doubt = unexplained + 1e-3 * sizes[0]
    decay = -shrunk if abs(shrunk) * sizes[2] > doubt else 0.0
    if -along * sizes[1] <= doubt:
        return None, unexplained
    return Fit(-along, again if again > MIN_MOMENTUM else 0.0, max(0.0, decay / -along)), unexplained
