"""Where a value that is no number was born: the deepest operation of the graph that was given numbers and gave none.

At the backward call of a non-finite loss the graph is still there. Each node that keeps its input or its result is
looked at; nothing is run again, nothing of the training is touched.
"""

from __future__ import annotations

import sys
from collections import deque

from . import graph_reading, reach, sites

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

NODES = 20_000
ROWS = 6
SAVED = ("_saved_self", "_saved_result", "_saved_other", "_saved_mat1", "_saved_mat2", "_saved_input", "_saved_weight")
_RESULT = "_saved_result"


def look(root: Any, frame: FrameType | None) -> dict[str, Any]:
    """What is known of the origin: tensors of the batch that are no numbers, and the operation that made the first."""
    torch = sys.modules["torch"]
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        found: dict[str, Any] = {"value": repr(root.item()), "inputs": _inputs(frame, torch)}
        if not graph_reading.hooks_used and root.grad_fn is not None:
            found.update(_graph(root.grad_fn, torch))
        return found


def _graph(root: Any, torch: Any) -> dict[str, Any]:
    """Nodes with something non-finite saved, the oldest first; and parameters that are no numbers."""
    bad: list[tuple[int, str, dict[str, Any]]] = []
    broken: list[list[int]] = []
    waiting, seen = deque([root]), {root}
    while waiting and len(seen) < NODES:
        node = waiting.popleft()
        name = graph_reading.name_of(node)
        if name.endswith(graph_reading.LEAF):
            if not _finite(node.variable, torch):
                broken.append([int(size) for size in node.variable.shape])
            continue
        given = _suspect(node, name, torch)
        if given is not None:
            bad.append((node._sequence_nr(), name.removesuffix("Backward"), given))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    bad.sort(key=lambda entry: entry[0])
    operations = [{"operation": name.lower(), **given} for _, name, given in bad[:4]]
    return {"operations": operations, "broken_parameters": broken[:4]}


def _suspect(node: Any, name: str, torch: Any) -> dict[str, Any] | None:
    """What in the node's saved tensors makes, or is, a value that is no number."""
    made = _recomputed(node, name, torch)
    if made is not None:
        return made
    result = graph_reading.saved(node, _RESULT)
    if result is not None and result.is_floating_point() and not _finite(result, torch):
        return {"where": "its result", **_rows(~torch.isfinite(result))}
    return None


def _recomputed(node: Any, name: str, torch: Any) -> dict[str, Any] | None:
    """Operations whose input is kept: is it finite, and is what comes of it not?"""
    kind = name.removesuffix("Backward")
    value = graph_reading.saved(node, "_saved_self")
    if kind == "Div":
        below = graph_reading.saved(node, "_saved_other")
        if below is not None and bool((below == 0).any()):
            return {"where": "division by 0", **_rows(below == 0)}
        return None
    if value is None or not value.is_floating_point() or not _finite(value, torch):
        return None
    if kind in ("Log", "Log2", "Log10") and bool((value <= 0).any()):
        zero = value <= 0
        return {"where": "log of 0" if not bool((value < 0).any()) else "log of a negative number", **_rows(zero)}
    if kind == "Log1p" and bool((value <= -1).any()):
        return {"where": "log1p of -1 or less", **_rows(value <= -1)}
    if kind in ("Exp", "Expm1"):
        over = ~torch.isfinite(torch.exp(value))
        return {"where": "exp of a number too large", **_rows(over)} if bool(over.any()) else None
    if kind in ("Sqrt", "Rsqrt") and bool((value < 0).any()):
        return {"where": "root of a negative number", **_rows(value < 0)}
    if kind == "Pow":
        exponent = getattr(node, "_saved_exponent", None)
        if isinstance(exponent, int | float):
            over = ~torch.isfinite(value**exponent)
            return {"where": f"power {exponent}", **_rows(over)} if bool(over.any()) else None
    if kind == "Std" and value.numel() < 2:
        return {"where": "standard deviation of one value", "rows": []}
    return None


def _rows(mask: Any) -> dict[str, Any]:
    """Which rows, and how many elements."""
    count = int(mask.sum())
    rows = mask.reshape(mask.shape[0], -1).any(dim=1).nonzero().flatten().tolist() if mask.dim() else []
    return {"count": count, "of": int(mask.numel()), "rows": [int(row) for row in rows[:ROWS]]}


def _inputs(frame: FrameType | None, torch: Any) -> list[dict[str, Any]]:
    """Tensors of the user's frames that were not computed with a gradient and hold what is no number: the data."""
    found: list[dict[str, Any]] = []
    here = frame
    seen: set[int] = set()
    while here is not None and len(found) < 4:
        if sites.is_user_file(here.f_code.co_filename):
            local = reach.locals_of(here) if here.f_code.co_flags & reach.FAST == reach.FAST else dict(here.f_globals)
            for name, value in local.items():
                for path, tensor in _tensors(value, name, torch, 0):
                    if id(tensor) in seen or tensor.requires_grad or not tensor.is_floating_point():
                        continue
                    seen.add(id(tensor))
                    if tensor.device.type == "cpu" and not tensor.is_sparse and not _finite(tensor, torch):
                        found.append({"name": path, **_input(tensor, torch), "function": sites.name_of(here.f_code)})
        here = here.f_back
    return found


def _input(tensor: Any, torch: Any) -> dict[str, Any]:
    mask = ~torch.isfinite(tensor)
    columns: list[int] = []
    if tensor.dim() == 2:
        columns = [int(column) for column in mask.any(dim=0).nonzero().flatten().tolist()[:ROWS]]
    return {
        "shape": [int(size) for size in tensor.shape],
        "nan": int(torch.isnan(tensor).sum()),
        "inf": int(torch.isinf(tensor).sum()),
        "negative_inf_only": bool((tensor[mask] == float("-inf")).all()),
        "columns": columns,
        **_rows(mask),
    }


def _tensors(value: Any, path: str, torch: Any, depth: int) -> list[tuple[str, Any]]:
    kind = type(value)
    if kind is torch.Tensor:
        return [(path, value)]
    if depth > 2 or kind not in (list, tuple, dict):
        return []
    items = value.items() if kind is dict else enumerate(value)
    return [found for key, inner in list(items)[:16] for found in _tensors(inner, f"{path}[{key!r}]", torch, depth + 1)]


def _finite(tensor: Any, torch: Any) -> bool:
    return bool(torch.isfinite(tensor.detach()).all())
