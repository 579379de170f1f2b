"""Before a backward pass: the loss is finite, will its gradient be? Paths lead to the few nodes that can spoil it."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from ... import flight
from ...records import Site
from ...records.numerics import Operation
from ..learning import graph_reading, script_lines
from ..learning.graph_reading import SavedTensors
from ..learning.losses import Series

MAX_NODES = 600
MAX_WATCHED = 6
AGAIN, LAST_SEARCH = 8, 512  # the graph is searched at the first value of a loss, then at the eighth, and so on
LOGS = ("Log", "Log2", "Log10", "Log1P")
KINDS = ("Sqrt", "Pow", "Acos", "Asin", *LOGS, "Div", "Reciprocal", "Rsqrt", "Exp")
"""Whose slope can be infinite, or NaN where a mask takes the bad result out again."""


class Steep:
    def __init__(self, saved: SavedTensors) -> None:
        self._saved = saved
        self.last: Operation | None = None  # the last infinite slope that a backward pass went through
        self._sites: dict[str, Site | None] = {}

    def look(self, root: Any, series: Series, frame: FrameType | None) -> None:
        if self._saved.hooked or root.grad_fn is None:
            return
        if series.count >= series.look_at:
            series.steep = _find(root.grad_fn)
            series.look_at = series.look_at * AGAIN if series.look_at < LAST_SEARCH else 1 << 62
        if series.steep:
            with torch.no_grad():
                self._look_at(root.grad_fn, series.steep, frame)

    def _look_at(self, root: Any, paths: list[tuple[tuple[int, ...], str]], frame: FrameType | None) -> None:
        from . import edges

        for path, name in paths:
            node = graph_reading.at(root, path)
            if node is None or graph_reading.name_of(node) != name:
                continue
            edge = edges.slope(node, name.removesuffix("Backward"))
            if edge is not None:
                self.last = edge.record(node, path, step=flight.steps(), site=self._site(node, frame))
                return

    def _site(self, node: Any, frame: FrameType | None) -> Site | None:
        operation = graph_reading.operation_of(node)
        if operation not in self._sites:
            self._sites[operation] = script_lines.only_line(operation, frame)
        return self._sites[operation]


def _find(root: Any) -> list[tuple[tuple[int, ...], str]]:
    """Paths to the nodes worth watching; most graphs have none."""
    found: list[tuple[tuple[int, ...], str]] = []
    for node, path in graph_reading.with_paths(root, MAX_NODES):
        name = graph_reading.name_of(node)
        if name.removesuffix("Backward") in KINDS and not _harmless(node, name):
            found.append((path, name))
            if len(found) >= MAX_WATCHED:
                break
    return found


def _harmless(node: Any, name: str) -> bool:
    """A square, and a division by a plain number."""
    if name == "PowBackward":
        exponent: Any = getattr(node, "_saved_exponent", None)
        return type(exponent) in (int, float) and exponent >= 1
    if name == "DivBackward":
        below = graph_reading.saved(node, "_saved_other")
        return below is None or (below.dim() == 0 and not below.requires_grad)
    return False
