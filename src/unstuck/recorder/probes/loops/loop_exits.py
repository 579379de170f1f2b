"""Ways out of a loop, and what guards them."""

from __future__ import annotations

import ast

from ...records.loops import WayOut
from . import source_text
from .conditions import condition
from .statements import beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from .statements import Placed
    from .values import Scope

MOST = 16
_LEAVING = ("sys.exit", "exit", "quit", "os._exit")
_STOPS = ("StopIteration", "SystemExit", "KeyboardInterrupt", "StopAsyncIteration")


def ways_out(loop: ast.While | ast.For | ast.AsyncFor, scope: Scope) -> list[WayOut]:
    """Each `break`, `return` and call that leaves the loop, with the conditions on its way."""
    found: list[WayOut] = []
    for placed in beneath(loop.body):
        kind = _leaves(placed)
        if kind is not None and len(found) < MOST:
            guards = [condition(guard, scope, wanted) for guard, wanted in placed.guards]
            found.append(WayOut(line=placed.statement.lineno, kind=kind, guards=guards))
    return found


def _leaves(placed: Placed) -> Literal["break", "return", "raise", "exit"] | None:
    statement = placed.statement
    if isinstance(statement, ast.Break):
        return None if placed.nested else "break"
    if isinstance(statement, ast.Return):
        return "return"
    if isinstance(statement, ast.Raise) and statement.exc is not None:
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return "raise" if source_text.text(raised).rpartition(".")[2] in _STOPS else None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return "exit" if source_text.text(statement.value.func) in _LEAVING else None
    return None
