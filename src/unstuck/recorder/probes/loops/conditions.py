"""A condition of the user's piece by piece, each with its text and what it comes to now."""

from __future__ import annotations

import ast
from types import FunctionType

from ...objects import UNKNOWN, class_name, in_class
from ...records.loops import Comparison, Condition, Side, Value
from . import inlined, source_text
from .values import BITS, COMPARE, compare, number, truth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .values import Scope

PARTS = 32
"""Of an `and` or `or`."""
CALLS = 3
"""Functions that are read one inside another."""
TEXT, SHOWN = 200, 80
"""Letters of a condition, and of a text that is a value."""


def condition(node: ast.expr | str, scope: Scope, wanted: bool = True, calls: int = CALLS) -> Condition:
    """`wanted`: the value that leads to where the condition is on the way. A text stands for what is no expression."""
    if isinstance(node, str):
        return Condition(text=node[:TEXT], wanted=wanted)
    text = source_text.text(node)[:TEXT]
    if not source_text.is_small(node):
        return Condition(text=text, wanted=wanted)
    if isinstance(node, ast.BoolOp):
        return _joined(node, text, scope, wanted, calls)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        part = condition(node.operand, scope, calls=calls)
        value = None if part.value is None else not part.value
        return Condition(text=text, kind="not", value=value, parts=[part], wanted=wanted)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARE:
        return _compared(node, text, scope, wanted)
    if isinstance(node, ast.Call) and calls:
        answer = _answer(node, scope)
        if answer is not None:
            part = condition(answer, scope, calls=calls - 1)
            return Condition(text=text, kind="call", parts=[part], wanted=wanted)
    value = scope.find(node)
    return Condition(
        text=text,
        kind="truth",
        value=truth(value),
        tested=shown(value),
        names=list(source_text.names(node)),
        calls=source_text.calls(node),
        wanted=wanted,
    )


def names_in(whole: Condition) -> list[str]:
    return [*whole.names, *(name for part in whole.parts for name in names_in(part))]


def _joined(node: ast.BoolOp, text: str, scope: Scope, wanted: bool, calls: int) -> Condition:
    parts = [condition(part, scope, calls=calls) for part in node.values[:PARTS]]
    deciding = isinstance(node.op, ast.Or)
    values = [part.value for part in parts] + [None] * (len(node.values) > PARTS)
    value = deciding if deciding in values else None if None in values else not deciding
    return Condition(text=text, kind="or" if deciding else "and", value=value, parts=parts, wanted=wanted)


def _compared(node: ast.Compare, text: str, scope: Scope, wanted: bool) -> Condition:
    right_node, how = node.comparators[0], node.ops[0]
    left, right = scope.find(node.left), scope.find(right_node)
    compared = Comparison(
        left=Side(text=source_text.text(node.left), value=shown(left)),
        op=COMPARE[type(how)][0],
        right=Side(text=source_text.text(right_node), value=shown(right)),
    )
    return Condition(
        text=text,
        kind="compare",
        value=truth(compare(how, left, right)),
        compared=compared,
        names=list(source_text.names(node)),
        calls=source_text.calls(node),
        wanted=wanted,
    )


def _answer(call: ast.Call, scope: Scope) -> ast.expr | None:
    """What a function of the user's would give back, as an expression in the caller's names."""
    function = call.func
    owner = function.value if isinstance(function, ast.Attribute) else function
    held = scope.find(owner)
    if held is UNKNOWN:
        return None
    if owner is function and type(held) is FunctionType:
        source = inlined.source_of(held)
        return None if source is None else inlined.returned(call, source, None)
    written = in_class(type(held), function.attr if isinstance(function, ast.Attribute) else "__call__")
    source = None if written is None else inlined.source_of(written[1])
    return None if source is None else inlined.returned(call, source, owner)


def shown(value: Any) -> Value:
    """A value as a record holds it: plain ones as they are, others by the name of their type."""
    value = number(value)
    kind = type(value)
    if value is UNKNOWN:
        return Value()
    if value is None:
        return Value(kind="none", text="None")
    if kind is bool:
        return Value(kind="bool", text=str(value))
    if kind is float or (kind is int and value.bit_length() < BITS):
        return Value(kind="number", text=repr(value), number=value)
    if kind is int:
        return Value(
            kind="number", text=f"a number of {value.bit_length():,} bits", number=1e308 if value > 0 else -1e308
        )
    return Value(kind="text", text=repr(value[:SHOWN])) if kind is str else Value(kind="object", text=class_name(kind))
