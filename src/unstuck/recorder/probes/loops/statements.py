"""Statements below a loop, each with the conditions on its way; what a statement gives a value."""

from __future__ import annotations

import ast
from functools import lru_cache

from . import source_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    Guards = tuple[tuple[ast.expr | str, bool], ...]
    """Conditions, or a text where there is none, and the value that leads on."""
    Given = Literal["constant", "add", "other"]

LOOPS = (ast.While, ast.For, ast.AsyncFor)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
STATEMENTS = 5000
GUARDS = 24
"""On the way to one statement; what is further in is not told apart."""
_TRY = (ast.Try, *((ast.TryStar,) if hasattr(ast, "TryStar") else ()))
_WITH = (ast.With, ast.AsyncWith)
_HEADS = (*LOOPS, *_WITH, *_TRY, *SCOPES, ast.If, ast.Match)


class Placed:
    """A statement, the conditions on the way to it, and whether another loop is in between."""

    __slots__ = ("guards", "nested", "statement")

    def __init__(self, statement: ast.stmt, guards: Guards, nested: bool) -> None:
        self.statement, self.guards, self.nested = statement, guards, nested


def beneath(body: list[ast.stmt]) -> Iterator[Placed]:
    """Every statement that runs in the same scope, in the order they are written."""
    waiting = [Placed(each, (), False) for each in reversed(body)]
    for _ in range(STATEMENTS):
        if not waiting:
            return
        here = waiting.pop()
        yield here
        for inner, added, nested in reversed(list(_bodies(here.statement))):
            guards = here.guards + added if len(here.guards) < GUARDS else (*here.guards[:GUARDS], ("…", True))
            waiting.extend(Placed(each, guards, here.nested or nested) for each in reversed(inner))


def _bodies(statement: ast.stmt) -> Iterator[tuple[list[ast.stmt], Guards, bool]]:
    """Statements within a statement, with what this adds to their conditions."""
    if isinstance(statement, ast.If):
        yield statement.body, ((statement.test, True),), False
        yield statement.orelse, ((statement.test, False),), False
    elif isinstance(statement, LOOPS):
        tested = isinstance(statement, ast.While) and not isinstance(statement.test, ast.Constant)
        yield statement.body, ((statement.test, True),) if tested else (), True  # type: ignore[union-attr]
        yield statement.orelse, (), False
    elif isinstance(statement, _WITH):
        yield statement.body, (), False
    elif isinstance(statement, _TRY):
        for part in (statement.body, statement.orelse, statement.finalbody):
            yield part, (), False
        for handler in statement.handlers:
            caught = f"except {source_text.text(handler.type)}" if handler.type else "except"
            yield handler.body, ((caught, True),), False
    elif isinstance(statement, ast.Match):
        for case in statement.cases:
            yield case.body, ((f"case {source_text.text(case.pattern)}", True),), False


@lru_cache(maxsize=8192)
def gives(statement: ast.stmt) -> tuple[tuple[str, Given], ...]:
    """Names that the statement gives a value, as written, and how."""
    return tuple(_gives(statement))


def _gives(statement: ast.stmt) -> Iterator[tuple[str, Given]]:
    if isinstance(statement, ast.AugAssign):
        yield source_text.text(statement.target), "add" if isinstance(statement.op, (ast.Add, ast.Sub)) else "other"
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            for one, value in _pairs(target, statement.value):
                yield source_text.text(one), _kind(one, value)
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield from ((name, "other") for name in source_text.names(statement.target))
    elif isinstance(statement, _WITH):
        yield from ((source_text.text(item.optional_vars), "other") for item in statement.items if item.optional_vars)
    if not isinstance(statement, (*_HEADS, ast.AugAssign)):
        yield from ((node.target.id, "other") for node in ast.walk(statement) if isinstance(node, ast.NamedExpr))


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """`a, b = 0, 1` gives each name its own value; `a, b = f()` gives them one that is not known."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
        return
    values = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else ()
    for place, one in enumerate(target.elts):
        yield from _pairs(one, values[place] if values else None)


def _kind(target: ast.expr, value: ast.expr | None) -> Given:
    if isinstance(value, ast.Constant):
        return "constant"
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        sides = (source_text.text(value.left), source_text.text(value.right))
        return "add" if source_text.text(target) in sides else "other"
    return "other"
