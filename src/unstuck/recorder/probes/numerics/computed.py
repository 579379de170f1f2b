"""A tensor without a graph that the script computed itself: from which line, and whether it was given numbers."""

from __future__ import annotations

import ast
from typing import Any

import torch

from ... import user_code
from ...records.numerics import ComputedValue
from . import source_lines

EDGES = ("std", "var", "log", "log2", "log10", "sqrt", "rsqrt", "exp", "div", "pow", "softmax", "reciprocal")
"""Calls that can make what is no number out of numbers."""


def computed(name: str, file: str, function: str, local: dict[str, Any]) -> ComputedValue | None:
    """The operation at the edge in the only assignment of that name, if all tensors it is given hold numbers."""
    tree = source_lines.parse(file)
    found = _assignments(tree, name, function.rpartition(".")[2]) if tree is not None else []
    if len(found) != 1:
        return None
    operation = _edge(found[0].value)
    names = {node.id for node in ast.walk(found[0].value) if isinstance(node, ast.Name)}
    given = [local[each] for each in names if type(local.get(each)) is torch.Tensor]
    if operation is None or not given or not all(bool(torch.isfinite(tensor).all()) for tensor in given):
        return None
    alone = operation in ("std", "var") and any(tensor.numel() <= 1 for tensor in given)
    site = user_code.absolute(file), found[0].lineno, function
    if alone:
        return ComputedValue(operation=operation, why="spread-of-too-few", detail="of 1 value", site=site)
    return ComputedValue(operation=operation, why="computed", site=site)


def _assignments(tree: ast.Module, name: str, function: str) -> list[ast.Assign]:
    """Plain `name = …` in that function; an empty list where it also gets values in other ways."""
    scopes: list[ast.AST] = [n for n in ast.walk(tree) if getattr(n, "name", None) == function]
    found: list[ast.Assign] = []
    stored = 0
    for node in ast.walk(scopes[0] if scopes else tree):
        stored += isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == [name]:
            found.append(node)
    return found if len(found) == stored else []


def _edge(value: ast.expr) -> str | None:
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and source_lines.called(node) in EDGES:
            return source_lines.called(node)
    divides = any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) for node in ast.walk(value))
    return "div" if divides else None
