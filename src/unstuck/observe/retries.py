"""Finds what a loop keeps trying in vain: its `try` swallows the error, and the loop goes round again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

UNNAMED = "?"
_LEAVES = (ast.Raise, ast.Return, ast.Break)
_Scope = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def tried(loop: ast.While | ast.For | ast.AsyncFor) -> str:
    """The first argument of the first call that may fail without ending the loop; "?" where it has none; else empty.

    A `for` over a data set that skips its bad items goes on to the next one: only `while` and counted retries
    try the same thing again.
    """
    if not isinstance(loop, ast.While) and not _counts(loop):
        return ""
    for node in _inside(loop):
        if isinstance(node, ast.Try) and any(_swallows(handler) for handler in node.handlers):
            calls = [call for statement in node.body for call in ast.walk(statement) if isinstance(call, ast.Call)]
            named = (call.args[0] for call in calls if call.args and isinstance(call.args[0], ast.Name | ast.Attribute))
            first = next(named, None)
            return ast.unparse(first) if first is not None else UNNAMED
    return ""


def _counts(loop: ast.For | ast.AsyncFor) -> bool:
    """`for attempt in range(n)`, `in itertools.count()`: the same thing, another time."""
    if not isinstance(loop.iter, ast.Call):
        return False
    return ast.unparse(loop.iter.func).rpartition(".")[2] in ("range", "count", "repeat", "cycle")


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Nothing in it leaves the loop."""
    return not any(isinstance(node, _LEAVES) for statement in handler.body for node in ast.walk(statement))


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of the loop itself, not of functions defined in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _Scope):
            yield child
            yield from _inside(child)
