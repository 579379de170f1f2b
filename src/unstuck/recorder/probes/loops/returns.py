"""What a plain function gives back, worked out from its source and never run.

Returns, `if`, assignments to its own names, arithmetic, lengths, sums over short containers, properties that are as
plain. Everything else gives no answer.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from ... import lengths
from ...objects import UNKNOWN, class_dict, ids, in_class, mro_of
from .expressions import NUMBERS, Scope, cells, number, truth
from .parsed_source import function_alone

MOST_ELEMENTS = 500  # that one comprehension goes through
MOST_SUMMED = 100_000  # numbers
MOST_STATEMENTS = 100
_LISTED = ids(list, tuple, set, frozenset, range)
_NOTHING: Any = type("Nothing", (), {})()  # no `return` was reached


def given_back(function: FunctionType, thing: Any, owner: type, deep: int) -> Any:
    """What a method of `owner` without arguments would give back for `thing`, or UNKNOWN."""
    written = function_alone(function.__code__)
    if written is None or len(written.args.args) != 1:
        return UNKNOWN
    own = {written.args.args[0].arg: thing}
    given = Body(own, cells(function), function.__globals__, vars(builtins), of=(thing, owner), deep=deep).run(
        written.body
    )
    return UNKNOWN if given is _NOTHING else given


class Body(Scope):
    """One call of a function."""

    def __init__(self, *spaces: dict[str, Any], of: tuple[Any, type], deep: int) -> None:
        super().__init__(*spaces)
        self.of, self.deep = of, deep

    def run(self, body: list[ast.stmt]) -> Any:
        """Its answer; `_NOTHING` where the end was reached without one, UNKNOWN where something is not plain."""
        for statement in body[:MOST_STATEMENTS]:
            if isinstance(statement, ast.Return):
                return UNKNOWN if statement.value is None else number(self.find(statement.value))
            if isinstance(statement, ast.If):
                holds = truth(self.find(statement.test))
                given = UNKNOWN if holds is None else self.run(statement.body if holds else statement.orelse)
                if given is not _NOTHING:
                    return given
            elif not self._goes_on(statement):
                return UNKNOWN
        return _NOTHING

    def _goes_on(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.Pass):
            return True
        if isinstance(statement, ast.Expr):
            return isinstance(statement.value, ast.Constant)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            value = self.find(statement.value)
            if len(targets) == 1 and isinstance(targets[0], ast.Name) and value is not UNKNOWN:
                self.spaces[0][targets[0].id] = value
                return True
        return False

    def attribute(self, held: Any, name: str) -> Any:
        if name == "shape" and (shape := lengths.shape_of(held)) is not None:
            return shape
        known = super().attribute(held, name)
        written, looked_up = in_class(type(held), name), in_class(type(held), "__getattribute__")
        if known is not UNKNOWN or written is None or type(written[1]) is not property or self.deep > lengths.DEEP:
            return known
        plain = looked_up is not None and looked_up[0] is object
        getter = written[1].fget
        return given_back(getter, held, written[0], self.deep + 1) if plain and type(getter) is FunctionType else known

    def visit_Call(self, node: ast.Call) -> Any:
        if node.keywords:
            return UNKNOWN
        if isinstance(node.func, ast.Attribute):
            known = self._method(node.func, node.args)
            if known is not UNKNOWN:
                return known
        compute = _FUNCTIONS.get(id(self.visit(node.func)))
        if compute is None:
            return UNKNOWN
        given = [self.visit(argument) for argument in node.args]
        if any(value is UNKNOWN for value in given):
            return UNKNOWN
        if compute is len:
            return self._length(given[0]) if len(given) == 1 else UNKNOWN
        return _computed(compute, given)

    def _length(self, held: Any) -> Any:
        known = lengths.length(held, self.deep)
        return UNKNOWN if known is None else known

    def _method(self, function: ast.Attribute, arguments: list[ast.expr]) -> Any:
        """Of built-in containers and tensors; and `__len__`, also that of the class above."""
        name, above = function.attr, function.value
        if name == "__len__" and isinstance(above, ast.Call) and isinstance(above.func, ast.Name):
            return self._length_above() if above.func.id == "super" and not above.args else UNKNOWN
        held = self.visit(above)
        if held is UNKNOWN:
            return UNKNOWN
        if name == "__len__" and not arguments:
            return self._length(held)
        if type(held) is dict and not arguments and name in ("values", "keys") and len(held) <= MOST_ELEMENTS:
            return list(getattr(dict, name)(held))
        shape = lengths.shape_of(held) if name == "size" and len(arguments) == 1 else None
        place = self.visit(arguments[0]) if shape else None
        return shape[place] if shape and type(place) is int and -len(shape) <= place < len(shape) else UNKNOWN

    def _length_above(self) -> Any:
        """By the `__len__` of the next class."""
        thing, owner = self.of
        above = False
        for kind in mro_of(type(thing)):
            written = class_dict(kind).get("__len__") if above else None
            if written is not None:
                known = lengths.length_by(thing, kind, written, self.deep)
                return UNKNOWN if known is None else known
            above = above or kind is owner
        return UNKNOWN

    def visit_Dict(self, node: ast.Dict) -> Any:
        keys = [key.value if isinstance(key, ast.Constant) else UNKNOWN for key in node.keys]
        values = self._all(node.values)
        plain = values is not UNKNOWN and all(type(key) is str for key in keys)
        return dict(zip(keys, values, strict=True)) if plain else UNKNOWN

    def visit_List(self, node: ast.List) -> Any:
        return self._all(node.elts)

    visit_Tuple = visit_List  # type: ignore[assignment]

    def _all(self, nodes: list[ast.expr]) -> Any:
        values = [self.visit(node) for node in nodes]
        return UNKNOWN if any(value is UNKNOWN for value in values) else values

    def visit_GeneratorExp(self, node: ast.GeneratorExp | ast.ListComp) -> Any:
        loop = node.generators[0]
        through = self.visit(loop.iter)
        plain = len(node.generators) == 1 and not loop.is_async and isinstance(loop.target, ast.Name)
        if not plain or id(type(through)) not in _LISTED or len(through) > MOST_ELEMENTS:
            return UNKNOWN
        values: list[Any] = []
        for value in list(through):
            inner = Body({loop.target.id: value}, *self.spaces, of=self.of, deep=self.deep)  # type: ignore[attr-defined]
            tests = [truth(inner.visit(test)) for test in loop.ifs]
            if None in tests:
                return UNKNOWN
            if all(tests):
                values.append(inner.visit(node.elt))
                if values[-1] is UNKNOWN:
                    return UNKNOWN
        return values

    visit_ListComp = visit_GeneratorExp


def _computed(compute: Callable[..., Any], given: list[Any]) -> Any:
    """Of numbers, or of one short list of numbers."""
    listed = len(given) == 1 and id(type(given[0])) in _LISTED
    numbers: Iterable[Any] = given[0] if listed else given
    if listed and (len(given[0]) > MOST_SUMMED or compute not in _OF_LISTS):
        return UNKNOWN
    plain = [number(value) for value in numbers]
    if any(id(type(value)) not in NUMBERS for value in plain):
        return UNKNOWN
    try:
        return compute(plain) if listed else compute(*plain)
    except (TypeError, ValueError, ArithmeticError):
        return UNKNOWN


_OF_LISTS = (sum, min, max, any, all, len)
_FUNCTIONS: dict[int, Any] = {
    id(function): function for function in (*_OF_LISTS, abs, round, int, float, bool, range, math.ceil, math.floor)
}
