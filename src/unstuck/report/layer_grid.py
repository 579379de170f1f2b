"""Layers × steps: how large each layer's gradient was, and by what share an update changed its weights."""

from __future__ import annotations

import math
from typing import Any

from unstuck.recorder.records.learning import Learning, Parameter

MAX_LAYERS = 48  # rows that a reader can still tell apart
MAX_STEPS = 48  # columns

Cells = dict[tuple[str, int], tuple[float, float]]
"""By layer and step: sums of squares of the gradient or the move, and of the weight."""


def layer_grid(learning: Learning) -> dict[str, Any] | None:
    """None where too little was measured for a picture."""
    gradients: Cells = {}
    moves: Cells = {}
    layers = dict.fromkeys(_layer(parameter) for parameter in learning.parameters if parameter.grads or parameter.moves)
    for parameter in learning.parameters:
        weights = dict(zip((step for step, _ in parameter.moves), parameter.weights, strict=False))
        for step, norm in parameter.grads:
            _add(gradients, (_layer(parameter), step), norm, 0.0)
        for step, norm in parameter.moves:
            _add(moves, (_layer(parameter), step), norm, weights.get(step, math.nan))
    names = _spread(list(layers), MAX_LAYERS)
    steps = _spread(sorted({step for _, step in (*gradients, *moves)}), MAX_STEPS)
    if not names or len(steps) < 2:
        return None
    return {
        "pid": learning.pid,
        "of": len(layers),
        "step": steps,
        "layer": names,
        "gradient_norm": [[_root(gradients.get((name, step))) for step in steps] for name in names],
        "update_ratio": [[_ratio(moves.get((name, step))) for step in steps] for name in names],
    }


def _layer(parameter: Parameter) -> str:
    """Weight and bias belong together."""
    name, _, last = parameter.name.rpartition(".")
    return name if name and last in ("weight", "bias") else parameter.name or f"{parameter.module} {parameter.shape}"


def _add(cells: Cells, key: tuple[str, int], norm: float, weight: float) -> None:
    before = cells.get(key, (0.0, 0.0))
    cells[key] = before[0] + norm * norm, before[1] + weight * weight


def _root(cell: tuple[float, float] | None) -> float | None:
    return None if cell is None or not math.isfinite(cell[0]) else float(f"{math.sqrt(cell[0]):.4g}")


def _ratio(cell: tuple[float, float] | None) -> float | None:
    if cell is None or not all(map(math.isfinite, cell)) or cell[1] <= 0:
        return None
    return float(f"{math.sqrt(cell[0] / cell[1]):.4g}")


def _spread(items: list[Any], most: int) -> list[Any]:
    """The first, the last, and evenly of those between."""
    if len(items) <= most:
        return items
    return [items[round(place * (len(items) - 1) / (most - 1))] for place in range(most)]
