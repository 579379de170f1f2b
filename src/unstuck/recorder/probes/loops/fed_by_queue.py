"""A generator that gives what comes through a queue of its object, until a value comes that means the end.

Its own loop has a way out; but where the statement that puts this value stands after a loop that never ends, it is
never taken. Read from the source, not run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from .endless_stream import is_left
from .parsed_source import Function, beneath, own_nodes, text


def endless_feeder(function: Function, methods: Iterable[Function]) -> tuple[ast.stmt, Function] | None:
    """The loop of a method that should put the last value and never comes to it, and that method; None if the value
    may come."""
    awaited = _awaited_end(function)
    if awaited is None:
        return None
    feeders = [(method, node) for method in methods for node in own_nodes(method) if _puts(node, *awaited)]
    loops = [_loop_before(method, node) for method, node in feeders]
    if not loops or None in loops:
        return None
    return loops[0], feeders[0][0]  # type: ignore[return-value]


def _awaited_end(function: Function) -> tuple[str, object] | None:
    """The queue, and the value in it that alone ends the generator: `if item is None: return`."""
    taken: dict[str, str] = {}
    ends: set[tuple[str, object]] = set()
    for placed in beneath(function.body):
        statement = placed.statement
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            taken[statement.targets[0].id] = _drawn_from(statement.value)
        if isinstance(statement, (ast.Return, ast.Break)):
            test = placed.guards[-1][0] if placed.guards else None
            if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Is, ast.Eq)):
                return None
            queue, value = taken.get(text(test.left), ""), test.comparators[0]
            if not queue or not isinstance(value, ast.Constant):
                return None
            ends.add((queue, value.value))
    always = any(isinstance(each, ast.While) and isinstance(each.test, ast.Constant) for each in function.body)
    return ends.pop() if always and len(ends) == 1 else None


def _drawn_from(value: ast.expr) -> str:
    """`self.queue` of `self.queue.get()`."""
    got = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "get"
    return text(value.func.value) if got and not value.args and not value.keywords else ""  # type: ignore[attr-defined]


def _puts(node: ast.AST, queue: str, end: object) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return False
    given = node.args[0]
    into = node.func.attr in ("put", "put_nowait") and text(node.func.value) == queue
    return into and isinstance(given, ast.Constant) and given.value is end


def _loop_before(method: Function, node: ast.AST) -> ast.stmt | None:
    """The loop without an end that stands before this in the method."""
    for before in _endless_loops(method.body):
        after = method.body[method.body.index(before) + 1 :]
        if any(inner is node for statement in after for inner in ast.walk(statement)):
            return before
    return None


def _endless_loops(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant) and not is_left(statement):
            yield statement
