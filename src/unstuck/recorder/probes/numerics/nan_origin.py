"""Where NaN comes from: the oldest operation of the graph that got finite numbers and made NaN or infinity.

Loaded at the backward call of the first loss that is NaN or infinite, while its graph is still there. Each node that
keeps its input or its result is looked at; nothing is run again, nothing of the training is touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from time import thread_time
from types import FrameType
from typing import Any

import torch

from ... import flight, loading, tensors, user_code
from ...records import Site
from ...records.learning import DeadTerm
from ...records.numerics import BadTensor, Birth, BrokenParameter, GrownWeight, Operation
from ..learning import graph_reading, script_lines
from ..learning.graph_reading import SavedTensors, operation_of, saved
from ..learning.losses import Series
from ..learning.naming import Names
from ..learning.parameters import Parameters
from . import edges
from .computed_values import computed, log_before

MAX_BIRTHS = 4
MAX_NODES = 20_000
SEARCH_SECONDS = 0.4  # for the one look that a run gets when its loss is NaN
MAX_OLDEST, MAX_BROKEN, MAX_SIZES = 4, 8, 24
MAX_WEIGHTS, MAX_PARAMETERS = 4, 160
TRIES = 4  # steps in which the line of an operation is looked for
GIVEN = ("self", "other", "mat1", "mat2", "input", "weight", "target", "vec", "batch1", "batch2", "query", "key",
         "value", "x1", "x2", "tensor1", "tensor2")  # fmt: skip
"""Names under which nodes keep what they were given."""
MAX_TENSORS = 6  # of the user's frames that are described
MAX_DEPTH = 3
Wanted = Operation | BadTensor | DeadTerm
STACK_LINE = re.compile(r'File "([^"]+)", line (\d+), in (.*)')


class Search:
    """Through one graph: operations that made NaN, data that came so, parameters that are so."""

    def __init__(self, root: Any, names: Names) -> None:
        self._names = names
        self.made: list[Operation] = []
        self.outside: list[BadTensor] = []
        self.broken: list[BrokenParameter] = []
        self.sizes: list[tuple[int, str, float]] = []
        until = thread_time() + SEARCH_SECONDS
        for node, path in graph_reading.with_paths(root, MAX_NODES) if root is not None else ():
            if graph_reading.is_leaf(node):
                self._take_leaf(node.variable)
            else:
                self._take(node, path)
            if thread_time() > until:
                break
        self.sizes.sort()

    def _take_leaf(self, leaf: Any) -> None:
        if not edges.finite(leaf) and len(self.broken) < MAX_BROKEN:
            self.broken.append(BrokenParameter(name=self._names.name(leaf), shape=[int(n) for n in leaf.shape]))

    def _take(self, node: Any, path: tuple[int, ...]) -> None:
        order, operation = node._sequence_nr(), operation_of(node)
        result = saved(node, "_saved_result")
        if result is not None and not result.is_floating_point():
            result = None
        self._take_operation(node, path, order, result)
        for role in GIVEN:
            tensor = saved(node, "_saved_" + role)
            if tensor is None or not tensor.is_floating_point() or tensor.requires_grad or tensor.grad_fn is not None:
                continue
            if not edges.finite(tensor):
                bad = describe(tensor, operation=operation, role=role, path=list(path), order=order)
                self.outside.append(bad)
        if result is not None and result.numel():
            self.sizes.append((order, operation, float(result.abs().max())))

    def _take_operation(self, node: Any, path: tuple[int, ...], order: int, result: Any) -> None:
        """What in the node's saved tensors makes, or is, NaN or infinity."""
        kind = graph_reading.kind_of(node)
        edge = edges.forward(node, kind) or edges.of_loss(node, kind)
        if edge is None and (result is None or edges.finite(result)):
            return
        layer = graph_reading.layer_behind(node, self._names)
        if edge is not None:
            self.made.append(edge.record(node, path, order=order, layer=layer))
            return
        bad = Operation(
            operation=operation_of(node), why="result", dtype=str(result.dtype), order=order, path=list(path),
            layer=layer, **edges.rows_of(~torch.isfinite(result)),
        )  # fmt: skip
        self.made.append(bad)


class NanOrigins:
    """The first losses that were NaN or infinite, and what is known of where that came from."""

    def __init__(self, saved_tensors: SavedTensors, names: Names, parameters: Parameters) -> None:
        self._saved, self._names, self._parameters = saved_tensors, names, parameters
        self.births: list[Birth] = []

    def of(self, series: Series) -> Birth | None:
        return next((birth for birth in self.births if birth.site == series.site), None)

    def look(
        self, root: Any, value: float, frame: FrameType | None, series: Series, steep: Operation | None, *, late: bool
    ) -> None:
        """`late`: it was read some steps after it happened; `steep`: the last infinite slope."""
        if len(self.births) >= MAX_BIRTHS:
            return
        with torch.no_grad():
            found = Search(root.grad_fn if root is not None and not self._saved.hooked else None, self._names)
            operations = _oldest(found.made)
            if found.broken and steep is not None and flight.steps() - steep.step <= 1:
                operations = [steep]
            for operation in operations[:2]:
                if operation.site is None:
                    site = script_lines.only_line(operation.operation, frame)
                    operation.site = site
            every = max(1, len(found.sizes) // MAX_SIZES)
            birth = Birth(
                value=value, step=flight.steps(), site=series.site, before=series.count, last=series.last,
                since=series.nonfinite_step, late=late, batch=loading.batches()[:1], weights=self._weights(),
                operations=operations, outside=_oldest(found.outside), broken_parameters=found.broken,
                sizes=[(operation, size) for _, operation, size in found.sizes[::every]],
                inputs=in_frames(frame),
            )  # fmt: skip
        self.births.append(birth)

    def _weights(self) -> list[GrownWeight]:
        """Weight matrices, those first whose norm is farthest from what it was when last looked at."""
        found = []
        for key, entry in list(self._parameters.known.items())[:MAX_PARAMETERS]:
            parameter = entry.ref()
            if parameter is None or len(entry.shape) < 2 or not entry.weights:
                continue
            before, now = min(entry.weights[-4:]), float(torch.linalg.vector_norm(parameter.detach().float()))
            if before > 0 and before - before == 0.0:
                found.append((now / before, GrownWeight(name=self._names.names.get(key, ""), before=before, now=now)))
        found.sort(key=lambda grown: -grown[0] if grown[0] == grown[0] else float("-inf"))
        return [weight for _, weight in found[:MAX_WEIGHTS]]


def _oldest(found: Iterable[Any]) -> list[Any]:
    return sorted(found, key=lambda bad: bad.order)[:MAX_OLDEST]


class Tracing:
    """The user's line that an operation of the graph stands in, seen in the next step's own stack.

    A broken run goes on like that: its next forward pass is made with torch's own bookkeeping of stacks switched on
    (anomaly mode without its checks, which changes no result), the node at the same place is asked, and it is off
    again."""

    def __init__(self, wanted: Sequence[Wanted], birth: Birth | None = None) -> None:
        self._wanted, self._birth = wanted, birth
        self._left = TRIES
        self.on = any(bad.site is None for bad in wanted) and not torch.is_anomaly_enabled()
        if self.on:
            torch.set_anomaly_enabled(True, False)

    def look(self, root: Any) -> bool:
        """Before the backward pass of that step: ask the nodes, and switch it off. True: something was found."""
        self._left -= 1
        found = False
        for bad in self._wanted:
            site = _site_of(root, bad)
            if site is not None:
                bad.site = site  # type: ignore[misc]  # it is written anew
                found = True
                of = self._birth
                if of is not None and isinstance(bad, BadTensor) and bad.negative_inf_only and of.computed is None:
                    of.computed = log_before(site)  # type: ignore[misc]  # as above
        if found or self._left <= 0:
            self.stop()
        return found

    def stepped(self) -> None:
        """Steps without a loss of that kind: it is given up after some."""
        self._left -= 1
        if self._left < -TRIES:
            self.stop()

    def stop(self) -> None:
        if self.on:
            self.on = False
            torch.set_anomaly_enabled(False)


def _site_of(root: Any, bad: Wanted) -> Site | None:
    node = graph_reading.at(root.grad_fn, bad.path) if root.grad_fn is not None else None
    if node is None or operation_of(node) != bad.operation:
        return None
    for entry in reversed(node.metadata.get("traceback_") or []):
        line = STACK_LINE.search(entry)
        if line is not None and user_code.is_user_file(line[1]):
            return user_code.absolute(line[1]), int(line[2]), line[3].strip()
    return None


# --- tensors without a graph that hold NaN or infinity: in the user's frames, or given to an operation of the graph ---


def in_frames(frame: FrameType | None) -> list[BadTensor]:
    """Tensors of the user's frames that were not computed with a gradient and hold NaN or infinity: the data."""
    found: list[BadTensor] = []
    seen: set[int] = set()
    for here in script_lines.user_frames(frame):
        if len(found) >= MAX_TENSORS:
            break
        local = script_lines.names_in(here)
        function, file = user_code.name_of(here.f_code), user_code.absolute(here.f_code.co_filename)
        for name, value in local.items():
            for path, tensor in tensors.plain_tensors(value, MAX_DEPTH):
                if id(tensor) in seen or not _is_bad(tensor):
                    continue
                seen.add(id(tensor))
                nodes, _ = script_lines.assignments(name, file, function)
                assigned = (file, nodes[0].lineno, function) if nodes else None
                made = computed(name, file, function, local, (local, here.f_globals)) if not path else None
                found.append(
                    describe(tensor, name=f"{name}{path}", function=function, computed=made, assigned=assigned)
                )
    return found


def _is_bad(tensor: Any) -> bool:
    if tensor.requires_grad or not tensor.is_floating_point() or tensor.is_sparse or tensor.is_meta:
        return False
    return tensor.dim() > 0 and not edges.finite(tensor)  # a single number is a logged loss: a consequence


def describe(tensor: Any, **more: Any) -> BadTensor:
    mask = ~torch.isfinite(tensor)
    columns: list[int] = []
    whole: list[int] = []
    if tensor.dim() == 2:
        columns = mask.any(dim=0).nonzero().flatten().tolist()
        whole = mask.all(dim=0).nonzero().flatten().tolist() if tensor.shape[0] > 1 else []
    return BadTensor(
        shape=[int(size) for size in tensor.shape],
        nan=int(torch.isnan(tensor).sum()),
        inf=int(torch.isinf(tensor).sum()),
        negative_inf_only=bool((tensor[mask] == float("-inf")).all()),
        columns=columns[: edges.MAX_ROWS],
        bad_columns=len(columns),
        whole_columns=whole[: edges.MAX_ROWS],
        address=tensor.data_ptr(),
        **edges.rows_of(mask),
        **more,
    )
