"""Whether an expression of the script's reads nothing that learns: numbers and finite tensors without a graph only, put
together by torch's own operations. What it gives is then no weight's doing. Nothing is run."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Any

import torch

from ... import objects
from ..learning import naming
from . import edges

Spaces = tuple[dict[str, Any], ...]
"""Names of a function, and of its module."""
MAX_ELEMENTS = 1 << 20
OF_TENSORS = frozenset(dir(torch.Tensor))
NUMBERS = objects.ids(int, float, bool, str, type(None), torch.dtype, torch.device, torch.Size)
BUILTINS = ("abs", "float", "int", "len", "max", "min", "sum")


def is_plain(node: ast.AST, spaces: Spaces) -> bool:
    if isinstance(node, ast.Call):
        return _is_of_torch(node.func, spaces) and all(is_plain(each, spaces) for each in (*node.args, *node.keywords))
    if isinstance(node, ast.Name | ast.Attribute):
        held = _value(node, spaces)
        if held is not objects.UNKNOWN:
            return _is_inert(held)
        return isinstance(node, ast.Attribute) and node.attr in OF_TENSORS and is_plain(node.value, spaces)
    if isinstance(node, ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.comprehension):
        return False
    return all(is_plain(each, spaces) for each in ast.iter_child_nodes(node))


def _is_of_torch(function: ast.expr, spaces: Spaces) -> bool:
    """A function of torch's, or a tensor's method."""
    if not isinstance(function, ast.Attribute):
        return isinstance(function, ast.Name) and function.id in BUILTINS
    base = _value(function.value, spaces)
    if issubclass(type(base), ModuleType):
        name = (objects.module_dict(base) or {}).get("__name__")
        return type(name) is str and name.partition(".")[0] in ("torch", "math")
    return function.attr in OF_TENSORS and is_plain(function.value, spaces)


def _value(node: ast.AST, spaces: Spaces) -> Any:
    if isinstance(node, ast.Name):
        found = (objects.entry(space, node.id) for space in spaces)
        return next((value for value in found if value is not objects.UNKNOWN), objects.UNKNOWN)
    held = _value(node.value, spaces) if isinstance(node, ast.Attribute) else objects.UNKNOWN
    if held is objects.UNKNOWN or not isinstance(node, ast.Attribute):
        return objects.UNKNOWN
    own = objects.attribute(held, node.attr)
    return own if own is not objects.UNKNOWN else naming.table(held, "_buffers").get(node.attr, objects.UNKNOWN)


def _is_inert(value: Any) -> bool:
    if type(value) is not torch.Tensor:
        return id(type(value)) in NUMBERS
    read = value.device.type == "cpu" and value.layout is torch.strided and value.numel() <= MAX_ELEMENTS
    return read and not value.requires_grad and edges.finite(value)
