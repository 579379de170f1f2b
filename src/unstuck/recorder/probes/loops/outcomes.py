"""What an expression comes to by plain arithmetic: from the numbers that it reads now, or whatever they are.

`min(floor(length * growth), goal)` may come to the length that there is already, and `(best - loss) / best` to NaN
whatever the loss is, as long as `best` is infinite. Nothing of the user's is run.
"""

from __future__ import annotations

import ast
import math
from collections import deque
from math import isfinite, isnan
from typing import Any

from ... import lengths
from ...objects import UNKNOWN, ids, some_items
from .expressions import NUMBERS, Scope
from .parsed_source import is_small, text

PROBES = (0.37, -2.9, 1700.0)  # that stand for any finite number; each name gets a multiple of its own
_REDUCING = ids(list, tuple, deque)
_FUNCTIONS: dict[int, Any] = {
    id(function): function for function in (min, max, abs, round, int, float, math.floor, math.ceil)
}
_OF_ALL = ("max", "min", "sum", "mean", "median", "fmean")  # NaN where all that they are given is NaN


def now(node: ast.expr, scope: Scope) -> tuple[Any, list[str]]:
    """The number an expression comes to and the names it reads for that; UNKNOWN where it is more than arithmetic."""
    outcome = _Outcome(scope)
    value = outcome.visit(node) if is_small(node) else UNKNOWN
    return (value, list(outcome.reads)) if id(type(value)) in NUMBERS else (UNKNOWN, [])


def nan_by(node: ast.expr, scope: Scope) -> list[str]:
    """The infinite names, and those that are NaN, that make an expression NaN whatever it reads besides."""
    reads: dict[str, None] = {}
    for probe in PROBES if is_small(node) else ():
        outcome = _Outcome(scope, probe)
        value = outcome.visit(node)
        if type(value) is not float or not isnan(value):
            return []
        reads.update(outcome.reads)
    return list(reads)


def terms(node: ast.expr, scope: Scope) -> dict[str, int] | None:
    """The names in a sum or difference of numbers and clocks, each with the sign that it has there; None: it is more
    than that. `time.time() - start` gives `start: -1`."""
    found: dict[str, int] = {}
    waiting = [(node, 1)] if is_small(node) else []
    while waiting:
        part, sign = waiting.pop()
        if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Add, ast.Sub)):
            waiting += [(part.left, sign), (part.right, -sign if isinstance(part.op, ast.Sub) else sign)]
        elif isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)):
            found[text(part)] = sign
        elif scope.clock(part) is None and not _is_constant(part):
            return None
    return found if is_small(node) else None


def _is_constant(node: ast.expr) -> bool:
    """A number that is written out: `10 * 60`."""
    inside = list(ast.walk(node))
    return all(isinstance(each, (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant)) for each in inside)


class _Outcome(Scope):
    """`rest`: what stands for all that is finite or not known; None: that is read as it is."""

    def __init__(self, scope: Scope, rest: float | None = None) -> None:
        super().__init__(*scope.spaces)
        self._scope, self._rest = scope, rest
        self._others: dict[object, int] = {}
        self._within: set[str] = set()
        self.reads: dict[str, None] = {}

    def _other(self, key: object) -> Any:
        if self._rest is None:
            return UNKNOWN
        return self._rest * (1 + 0.3 * self._others.setdefault(key, len(self._others)))

    def generic_visit(self, node: ast.AST) -> Any:
        return self._other(id(node))

    def visit_Name(self, node: ast.Name) -> Any:
        written = None if node.id in self._within else self._scope.defined(node.id)
        if written is None:
            return self._read(node)
        self._within.add(node.id)
        value = self.visit(written)
        self._within.remove(node.id)
        return value

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        return self._read(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        shaped = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        if shaped:
            return self._size(node.value.value, self._scope.find(node.slice))  # type: ignore[attr-defined]
        return self._nan_of(node.value) or self._read(node)

    def _size(self, node: ast.expr, place: Any) -> Any:
        """Of a tensor or an array, which has it for good."""
        shape = lengths.shape_of(self._scope.find(node))
        if self._rest is not None or not shape or type(place) is not int or not -len(shape) <= place < len(shape):
            return self._other(id(node))
        self.reads[text(node)] = None
        return shape[place]

    def _read(self, node: ast.expr) -> Any:
        value = self._scope.find(node)
        kind = type(value)
        taken = id(kind) in NUMBERS if self._rest is None else kind is float and not isfinite(value)
        if not taken:
            return self._other(text(node))
        self.reads[text(node)] = None
        return value

    def visit_Call(self, node: ast.Call) -> Any:
        held, given = self._scope.find(node.func), node.args
        plain = not node.keywords and not any(isinstance(each, ast.Starred) for each in given)
        if len(given) == 1 and text(node.func).rpartition(".")[2] in _OF_ALL and plain:
            return self._nan_of(given[0]) or self._other(id(node))
        if plain and len(given) == 1 and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
            return self._size(node.func.value, self._scope.find(given[0]))
        if plain and len(given) == 1 and held is len:
            return self._size(given[0], 0)
        compute = _FUNCTIONS.get(id(held)) if plain else None
        values = [] if compute is None else [self.visit(each) for each in given]
        if compute is None or not values or any(id(type(value)) not in NUMBERS for value in values):
            return self._other(id(node))
        try:
            return compute(*values)
        except (TypeError, ValueError, ArithmeticError):
            return UNKNOWN

    def _nan_of(self, node: ast.expr) -> float | None:
        """NaN where everything in a container is NaN, or in what is cut out of it."""
        if self._rest is None:
            return None
        node = node.value if isinstance(node, ast.Subscript) else node
        held = self._scope.find(node)
        items = some_items(held) if id(type(held)) in _REDUCING else []
        if not items or any(type(item) is not float or not isnan(item) for _, item in items):
            return None
        self.reads[text(node)] = None
        return math.nan
