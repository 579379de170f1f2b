"""Where a value that is no number was born: the oldest operation of the graph that was given numbers and gave none.

At the backward call of a non-finite loss the graph is still there. Each node that keeps its input or its result is
looked at; nothing is run again, nothing of the training is touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import thread_time
from types import FrameType
from typing import Any

import torch

from ... import flight, loading
from ...records.numerics import BadTensor, Birth, BrokenParameter, GrownWeight, Operation
from ..learning import activations, graph_reading
from ..learning.graph_reading import SavedTensors, operation_of, saved
from ..learning.losses import Series
from ..learning.naming import Names
from ..learning.updates import Updates
from . import bad_tensors, edges, source_lines
from .steep import Steep

BIRTHS = 4
NODES = 20_000
SECONDS = 0.4
"""For the one look that a run gets when its loss is no number any more."""
OLDEST, BROKEN, SIZES = 4, 8, 24
WEIGHTS, TENSORS = 4, 160
GIVEN = ("self", "other", "mat1", "mat2", "input", "weight", "target", "vec", "batch1", "batch2", "query", "key",
         "value", "x1", "x2", "tensor1", "tensor2")  # fmt: skip
"""Names under which nodes keep what they were given."""


class Search:
    """Through one graph: operations that made what is no number, data that came so, parameters that are so."""

    def __init__(self, root: Any, names: Names) -> None:
        self._names = names
        self.made: list[Operation] = []
        self.outside: list[BadTensor] = []
        self.broken: list[BrokenParameter] = []
        self.sizes: list[tuple[int, str, float]] = []
        until = thread_time() + SECONDS
        for node, path in graph_reading.with_paths(root, NODES):
            if graph_reading.name_of(node).endswith(graph_reading.LEAF):
                self._take_leaf(node.variable)
            else:
                self._take(node, path)
            if thread_time() > until:
                break
        self.sizes.sort()

    def _take_leaf(self, leaf: Any) -> None:
        if not edges.finite(leaf) and len(self.broken) < BROKEN:
            self.broken.append(BrokenParameter(name=self._names.name(leaf), shape=[int(n) for n in leaf.shape]))

    def _take(self, node: Any, path: tuple[int, ...]) -> None:
        order, operation = node._sequence_nr(), operation_of(node)
        suspect = self._suspect(node, path, order)
        if suspect is not None:
            self.made.append(suspect)
        for role in GIVEN:
            tensor = saved(node, "_saved_" + role)
            if tensor is None or not tensor.is_floating_point() or tensor.requires_grad or tensor.grad_fn is not None:
                continue
            if not edges.finite(tensor):
                about = bad_tensors.describe(tensor, operation=operation, role=role, path=list(path), order=order)
                self.outside.append(about)
        result = saved(node, "_saved_result")
        if result is not None and result.is_floating_point() and result.numel():
            self.sizes.append((order, operation, float(result.abs().max())))

    def _suspect(self, node: Any, path: tuple[int, ...], order: int) -> Operation | None:
        """What in the node's saved tensors makes, or is, a value that is no number."""
        kind = graph_reading.name_of(node).removesuffix("Backward")
        edge = edges.forward(node, kind) or edges.of_loss(node, kind)
        if edge is not None:
            return edge.record(node, path, order=order, layer=activations.layer_behind(node, self._names))
        result = saved(node, "_saved_result")
        if result is None or not result.is_floating_point() or edges.finite(result):
            return None
        return Operation(
            operation=operation_of(node), why="result", dtype=str(result.dtype), order=order, path=list(path),
            layer=activations.layer_behind(node, self._names), **edges.rows_of(~torch.isfinite(result)),
        )  # fmt: skip


class NanOrigins:
    """The first losses that were no number, and what is known of where that came from."""

    def __init__(self, saved_tensors: SavedTensors, names: Names, updates: Updates, steep: Steep) -> None:
        self._saved, self._names, self._updates, self._steep = saved_tensors, names, updates, steep
        self.births: list[Birth] = []

    def of(self, series: Series) -> Birth | None:
        return next((birth for birth in self.births if birth.site == series.site), None)

    def look(self, root: Any, value: float, frame: FrameType | None, series: Series, *, late: bool) -> None:
        """`late`: it was read some steps after it happened."""
        if len(self.births) >= BIRTHS:
            return
        with torch.no_grad():
            self.births.append(self._birth(root, value, frame, series, late))

    def _birth(self, root: Any, value: float, frame: FrameType | None, series: Series, late: bool) -> Birth:
        made: list[Operation] = []
        outside: list[BadTensor] = []
        broken: list[BrokenParameter] = []
        sizes: list[tuple[str, float]] = []
        if root is not None and root.grad_fn is not None and not self._saved.hooked:
            found = Search(root.grad_fn, self._names)
            made, outside, broken = _oldest(found.made), _oldest(found.outside), found.broken
            sizes = [(operation, size) for _, operation, size in found.sizes[:: max(1, len(found.sizes) // SIZES)]]
        steep = self._steep.last
        if broken and steep is not None and flight.steps() - steep.step <= 1:
            made = [steep]
        for operation in made[:2]:
            if operation.site is None:
                operation.site = source_lines.written(operation.operation, frame)  # type: ignore[misc]  # it is written anew
        return Birth(
            value=value, step=flight.steps(), site=series.site, before=series.count, last=series.last,
            since=series.nonfinite_step, late=late, batch=loading.batches()[:1], weights=self._weights(),
            operations=made, outside=outside, broken_parameters=broken, sizes=sizes,
            inputs=bad_tensors.in_frames(frame),
        )  # fmt: skip

    def _weights(self) -> list[GrownWeight]:
        """Weight matrices, those first whose norm is farthest from what it was when last looked at."""
        found = []
        for key, each in list(self._updates.parameters.items())[:TENSORS]:
            parameter = each.ref()
            if parameter is None or len(each.shape) < 2 or not each.weights:
                continue
            before, now = min(each.weights[-4:]), float(torch.linalg.vector_norm(parameter.detach().float()))
            if before > 0 and before - before == 0.0:
                found.append((now / before, GrownWeight(name=self._names.names.get(key, ""), before=before, now=now)))
        found.sort(key=lambda entry: -entry[0] if entry[0] == entry[0] else float("-inf"))
        return [about for _, about in found[:WEIGHTS]]


def _oldest(found: Iterable[Any]) -> list[Any]:
    return sorted(found, key=lambda about: about.order)[:OLDEST]
