"""Whether a stream's code goes round for ever: read from its source, not run.

A stream may repeat its samples on purpose, so and so often. Only a loop around its `yield` that has no end, or one of
`itertools` that has none, shows that it will not stop.
"""

from __future__ import annotations

import ast
import linecache
import textwrap
from types import FunctionType

from ... import objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FUNCTIONS = 40
"""Of the stream's, at most, that are read."""
ROUNDS = ("cycle", "count", "repeat")
_BOUNDED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.NotEq)
_LIBRARIES = ("builtins", "torch", "numpy")


def goes_round(stream: Any) -> bool:
    """The code that gives its samples, or that of what it holds, has a loop without an end."""
    things = [stream, *(objects.instance_dict(stream) or {}).values()]
    if any(type(thing).__module__ == "itertools" and type(thing).__name__ in ROUNDS for thing in things):
        return True
    read: set[FunctionType] = set()
    waiting = [(kind, f) for kind in map(type, things) if isinstance(f := _named(kind, "__iter__"), FunctionType)]
    while waiting and len(read) < FUNCTIONS:
        kind, function = waiting.pop()
        if function in read or function.__module__.partition(".")[0] in _LIBRARIES:
            continue
        read.add(function)
        tree = _parsed(function)
        if tree is not None and _endless(tree, function.__name__):
            return True
        names = {name for code in _codes(function) for name in code.co_names}
        called = [_named(kind, name) or function.__globals__.get(name) for name in names]
        waiting += [(kind, each) for each in called if isinstance(each, FunctionType)]
    return False


def _named(kind: type, name: str) -> object:
    """An attribute of the class as it is written: nothing is bound, nothing runs."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _codes(function: FunctionType) -> list[Any]:
    found = [function.__code__]
    for code in found:  # it grows
        found.extend(each for each in code.co_consts if hasattr(each, "co_names"))
    return found


def _parsed(function: FunctionType) -> ast.AST | None:
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    first = next((n for n, line in enumerate(lines) if line.lstrip().startswith(("def ", "async def "))), None)
    if first is None:
        return None
    lines = lines[first:]
    indent = len(lines[0]) - len(lines[0].lstrip())
    end = next((n for n, line in enumerate(lines[1:], 1) if _ends(line, indent)), len(lines))
    try:
        return ast.parse(textwrap.dedent("".join(lines[:end])))
    except SyntaxError:
        return None


def _ends(line: str, indent: int) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith(("#", ")", "]", "}")) and len(line) - len(line.lstrip()) <= indent


def _endless(tree: ast.AST, name: str) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.While) and _gives(node) and not _bounded(node.test) and not _left(node):
            return True
        if isinstance(node, ast.Call) and _called(node) in ROUNDS and not (_called(node) == "repeat" and _times(node)):
            return True
        if isinstance(node, ast.YieldFrom) and _itself(node.value, name):
            return True
    return False


def _gives(loop: ast.While) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(loop))


def _bounded(test: ast.expr) -> bool:
    """It counts something, or asks something that may come to an end."""
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) and any(map(_bounded, test.values))
    return isinstance(test, ast.Compare) and any(isinstance(each, _BOUNDED) for each in test.ops)


def _left(loop: ast.While) -> bool:
    """Something inside may leave it; a `break` leaves the innermost loop only."""
    waiting: list[tuple[ast.AST, bool]] = [(node, True) for node in loop.body]
    while waiting:
        node, own = waiting.pop()
        if isinstance(node, ast.Return) or (own and isinstance(node, ast.Break)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            own = own and not isinstance(node, (ast.For, ast.While))
            waiting += [(each, own) for each in ast.iter_child_nodes(node)]
    return False


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _times(node: ast.Call) -> bool:
    return len(node.args) > 1 or bool(node.keywords)


def _itself(value: ast.expr, name: str) -> bool:
    if isinstance(value, ast.Call):
        again = _called(value) == "iter" and bool(value.args) and _itself(value.args[0], name)
        return again or _called(value) == name
    return isinstance(value, ast.Name) and value.id == "self"
