"""Whether a `while` can ever be left by its test: nothing in its body changes what the test reads."""

from __future__ import annotations

import ast

from .parsed_source import Function

READING = frozenset(
    ("len", "sorted", "list", "tuple", "set", "min", "max", "sum", "enumerate", "zip", "range", "reversed", "print",
     "sample", "choice", "choices", "randint", "randrange", "index", "count", "items", "keys", "values", "get", "copy",
     "tensor")
)  # fmt: skip
"""Functions and methods that leave what they are given, or belong to, as it is."""
FRESH = (ast.Constant, ast.BinOp, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp)


def never_changes(loop: ast.While, function: Function) -> bool:
    """Nobody else has what the test reads either: each name is the function's own, made by it, and goes nowhere."""
    names = {node.id for node in ast.walk(loop.test) if isinstance(node, ast.Name)} - {"len", "self"}
    calls = [node for node in ast.walk(loop.test) if isinstance(node, ast.Call)]
    if not names or any(_called(call) != "len" for call in calls):
        return False
    if not all(_is_made(name, function, loop) for name in names):
        return False
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    fields = {node.attr for node in ast.walk(loop.test) if isinstance(node, ast.Attribute)}
    return not any(_changes(node, names, fields) for node in inside)


def _is_made(name: str, function: Function, loop: ast.While) -> bool:
    """All that the function gives this name, before the loop, is new."""
    given = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and any(_is(target, {name}) for target in node.targets)
    ]
    inside = {id(node) for node in ast.walk(loop)}
    made = all(
        isinstance(value, FRESH) or (isinstance(value, ast.Call) and _called(value) in READING) for value in given
    )
    return bool(given) and made and not any(id(value) in inside for value in given)


def _changes(node: ast.AST, names: set[str], fields: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in names and not isinstance(node.ctx, ast.Load)
    if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        return _is(node.value, names) or (isinstance(node, ast.Attribute) and node.attr in fields)
    if isinstance(node, ast.Call):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        about = [owner, *node.args, *(keyword.value for keyword in node.keywords)]
        own = fields and isinstance(owner, ast.Name) and owner.id == "self"  # a method may change them
        return bool(own) or (_called(node) not in READING and any(_is(each, names) for each in about))
    kept = node.value if isinstance(node, (ast.Assign, ast.Yield, ast.Return, ast.NamedExpr)) else None
    return _is(kept, names)


def _is(node: ast.AST | None, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
