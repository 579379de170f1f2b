"""Where a value that is no number was born: the oldest operation of the graph that was given numbers and gave none.

At the backward call of a non-finite loss the graph is still there. Each node that keeps its input or its result is
looked at; nothing is run again, nothing of the training is touched. Its line in the source comes from `origins`.
"""

from __future__ import annotations

import sys
from collections import deque
from time import thread_time

from ... import objects, user_code
from ..death import failures
from ..learning import activations, graph_reading, updates
from . import computed, singular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

NODES = 20_000
SECONDS = 0.4
"""For the one look that a run gets when its loss is no number any more."""
ROWS = 6
GIVEN = ("self", "other", "mat1", "mat2", "input", "weight", "target", "vec", "batch1", "batch2", "query", "key",
         "value", "x1", "x2", "tensor1", "tensor2")  # fmt: skip
"""Names under which nodes keep what they were given."""


def look(root: Any, frame: FrameType | None, names: Any) -> dict[str, Any]:
    """What is known of the origin: tensors of the batch that are no numbers, and the operation that made the first."""
    torch = sys.modules["torch"]
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        found: dict[str, Any] = {"value": repr(root.item()), "batch": failures.batches()[:1]}
        found["weights"] = _weights(names, torch)
        found["operations"], found["outside"], found["broken_parameters"], found["sizes"] = [], [], [], []
        if not graph_reading.hooks_used and root.grad_fn is not None:
            found.update(_graph(root.grad_fn, names, torch))
        found["inputs"] = _inputs(frame, torch)
        return found


def _graph(root: Any, names: Any, torch: Any) -> dict[str, Any]:
    """Operations that made what is no number, data that came so, parameters that are so: the oldest first."""
    made: list[tuple[int, dict[str, Any]]] = []
    outside: list[tuple[int, dict[str, Any]]] = []
    sizes: list[tuple[int, str, float]] = []
    broken: list[dict[str, Any]] = []
    waiting: deque[tuple[Any, tuple[int, ...]]] = deque([(root, ())])
    seen = {root}
    until = thread_time() + SECONDS
    while waiting and len(seen) < NODES and thread_time() < until:
        node, path = waiting.popleft()
        name = graph_reading.name_of(node)
        if name.endswith(graph_reading.LEAF):
            if not _finite(node.variable, torch):
                broken.append({"name": names.name(node.variable), "shape": [int(n) for n in node.variable.shape]})
            continue
        number, kind = node._sequence_nr(), name.removesuffix("Backward")
        suspect = _suspect(node, kind, torch)
        if suspect is not None:
            layer = activations._name(node, names)
            made.append((number, {"operation": _plain(kind), "layer": layer, "path": list(path), **suspect}))
        for attribute in GIVEN:
            tensor = graph_reading.saved(node, "_saved_" + attribute)
            if tensor is None or not tensor.is_floating_point() or tensor.requires_grad or tensor.grad_fn is not None:
                continue
            if not _finite(tensor, torch):
                about = {"operation": _plain(kind), "role": attribute, "path": list(path), **_input(tensor, torch)}
                outside.append((number, {**about, "address": tensor.data_ptr()}))
        result = graph_reading.saved(node, "_saved_result")
        if result is not None and result.is_floating_point() and result.numel():
            sizes.append((number, _plain(kind), float(result.abs().max())))
        for place, (following, _) in enumerate(node.next_functions):
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append((following, (*path, place)))
    for entries in (made, outside):
        entries.sort(key=lambda entry: entry[0])
    sizes.sort()
    return {
        "operations": [{"order": number, **about} for number, about in made[:4]],
        "outside": [{"order": number, **about} for number, about in outside[:4]],
        "broken_parameters": broken[:8],
        "sizes": [[kind, repr(size)] for _, kind, size in sizes[:: max(1, len(sizes) // 24)]],
    }


def _plain(kind: str) -> str:
    """Log, LinalgVectorNorm: as a person writes it."""
    return "".join(f"_{c.lower()}" if c.isupper() and place else c.lower() for place, c in enumerate(kind))


def _suspect(node: Any, kind: str, torch: Any) -> dict[str, Any] | None:
    """What in the node's saved tensors makes, or is, a value that is no number."""
    made = singular.forward(node, kind, torch) or _of_loss(node, kind)
    if made is not None:
        why, mask, value = made
        return {"made": True, "where": why, "example": value, **(_rows(mask) if mask is not None else {})}
    result = graph_reading.saved(node, "_saved_result")
    if result is not None and result.is_floating_point() and not _finite(result, torch):
        return {"made": False, "where": "its result", "dtype": str(result.dtype), **_rows(~torch.isfinite(result))}
    return None


def _of_loss(node: Any, kind: str) -> tuple[str, Any, str] | None:
    """A mean over no labels, or over nothing at all."""
    if kind in ("NllLoss", "NllLoss2D"):
        target, ignored = graph_reading.saved(node, "_saved_target"), getattr(node, "_saved_ignore_index", None)
        if target is not None and ignored is not None:
            ignored = ignored - (1 << 64) * (ignored >> 63)
            if target.numel() == 0 or bool((target == ignored).all()):
                return f"every label is ignore_index ({ignored})", None, str(int(target.numel()))
    if kind == "Mean" and getattr(node, "_saved_self_sym_numel", 1) == 0:
        return "mean of nothing", None, "0 elements"
    return None


def _rows(mask: Any) -> dict[str, Any]:
    """Which rows, and how many elements."""
    count = int(mask.sum())
    rows = mask.reshape(mask.shape[0], -1).any(dim=1).nonzero().flatten().tolist() if mask.dim() and count else []
    return {"count": count, "of": int(mask.numel()), "rows": [int(row) for row in rows[:ROWS]], "bad_rows": len(rows)}


def _weights(names: Any, torch: Any) -> list[dict[str, Any]]:
    """Weight matrices, those first whose norm is farthest from what it was when last looked at."""
    found = []
    for key, each in list(updates.parameters.items())[: updates.TENSORS]:
        parameter = each.ref()
        if parameter is None or len(each.shape) < 2 or not each.weights:
            continue
        before, now = min(each.weights[-4:]), float(torch.linalg.vector_norm(parameter.detach().float()))
        if before > 0 and before - before == 0.0:
            found.append((now / before, {"name": names.names.get(key, ""), "before": before, "now": repr(now)}))
    found.sort(key=lambda entry: -entry[0] if entry[0] == entry[0] else float("-inf"))
    return [about for _, about in found[:4]]


# --- the batch -----------------------------------------------------------------------------------------------


def _inputs(frame: FrameType | None, torch: Any) -> list[dict[str, Any]]:
    """Tensors of the user's frames that were not computed with a gradient and hold what is no number: the data."""
    found: list[dict[str, Any]] = []
    here = frame
    seen: set[int] = set()
    while here is not None and len(found) < 6:
        if user_code.is_user_file(here.f_code.co_filename):
            fast = here.f_code.co_flags & objects.FAST == objects.FAST
            local = objects.locals_of(here) if fast else dict(here.f_globals)
            for name, value in local.items():
                for path, tensor in tensors(value, name, torch, 0):
                    if id(tensor) in seen or tensor.requires_grad or not tensor.is_floating_point():
                        continue
                    seen.add(id(tensor))
                    if not tensor.is_sparse and not tensor.is_meta and not _finite(tensor, torch):
                        about = {"name": path, "function": user_code.name_of(here.f_code), **_input(tensor, torch)}
                        file = user_code.absolute(here.f_code.co_filename)
                        about["computed"] = computed.computed(path, file, about["function"], local, torch)
                        found.append({**about, "address": tensor.data_ptr(), "scalar": not tensor.dim(), "file": file})
        here = here.f_back
    return [each for each in found if not each["scalar"]]  # a logged loss is a consequence


def _input(tensor: Any, torch: Any) -> dict[str, Any]:
    mask = ~torch.isfinite(tensor)
    columns: list[int] = []
    whole: list[int] = []
    bad = 0
    if tensor.dim() == 2:
        every = mask.any(dim=0).nonzero().flatten().tolist()
        bad, columns = len(every), [int(column) for column in every[:ROWS]]
        whole = [int(column) for column in mask.all(dim=0).nonzero().flatten().tolist()[:ROWS]]
    return {
        "shape": [int(size) for size in tensor.shape],
        "nan": int(torch.isnan(tensor).sum()),
        "inf": int(torch.isinf(tensor).sum()),
        "negative_inf_only": bool((tensor[mask] == float("-inf")).all()),
        "columns": columns,
        "bad_columns": bad,
        "whole_columns": whole if tensor.dim() and tensor.shape[0] > 1 else [],
        **_rows(mask),
    }


def tensors(value: Any, path: str, torch: Any, depth: int) -> list[tuple[str, Any]]:
    """Plain tensors in what a name stands for, each with how a person would write it."""
    kind = type(value)
    if kind is torch.Tensor:
        return [(path, value)]
    if depth > 2 or kind not in (list, tuple, dict):
        return []
    items = value.items() if kind is dict else enumerate(value)
    return [found for key, inner in list(items)[:16] for found in tensors(inner, f"{path}[{key!r}]", torch, depth + 1)]


def _finite(tensor: Any, torch: Any) -> bool:
    return bool(torch.isfinite(tensor.detach()).all())
