"""Tensors without a graph that hold NaN or infinity: in the user's frames, or given to an operation of the graph."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any

import torch

from ... import tensors, user_code
from ...records.numerics import BadTensor, ComputedValue
from ..learning.script_lines import names_in, user_frames
from . import edges, source_lines

MAX_TENSORS = 6
MAX_DEPTH = 3
EDGES = ("std", "var", "log", "log2", "log10", "sqrt", "rsqrt", "exp", "div", "pow", "softmax", "reciprocal")
"""Calls that can make NaN or infinity out of finite numbers."""


def in_frames(frame: FrameType | None) -> list[BadTensor]:
    """Tensors of the user's frames that were not computed with a gradient and hold NaN or infinity: the data."""
    found: list[BadTensor] = []
    seen: set[int] = set()
    for here in user_frames(frame):
        if len(found) >= MAX_TENSORS:
            break
        local = names_in(here)
        function, file = user_code.name_of(here.f_code), user_code.absolute(here.f_code.co_filename)
        for name, value in local.items():
            for path, tensor in tensors.plain_tensors(value, MAX_DEPTH):
                if id(tensor) in seen or not _is_bad(tensor):
                    continue
                seen.add(id(tensor))
                nodes, _ = source_lines.assignments(name, file, function)
                assigned = (file, nodes[0].lineno, function) if nodes else None
                made = computed(name, file, function, local) if not path else None
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


def computed(name: str, file: str, function: str, local: dict[str, Any]) -> ComputedValue | None:
    """The operation that made it in the only assignment of that name, if all tensors it was given are finite."""
    nodes, only = source_lines.assignments(name, file, function)
    plain = only and len(nodes) == 1 and isinstance(getattr(nodes[0], "targets", [None])[0], ast.Name)
    value = nodes[0].value if plain else None
    operation = _edge(value) if value is not None else None
    if value is None or operation is None:
        return None
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    given = [local[name] for name in names if type(local.get(name)) is torch.Tensor]
    if not given or not all(bool(torch.isfinite(tensor).all()) for tensor in given):
        return None
    site = user_code.absolute(file), nodes[0].lineno, function
    if operation in ("std", "var") and any(tensor.numel() <= 1 for tensor in given):
        return ComputedValue(operation=operation, why="spread-of-too-few", detail="of 1 value", site=site)
    return ComputedValue(operation=operation, why="computed", site=site)


def _edge(value: ast.expr) -> str | None:
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and source_lines.called(node) in EDGES:
            return source_lines.called(node)
    divides = any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) for node in ast.walk(value))
    return "div" if divides else None
