"""Values of the user's expressions in a frame, read without running anything of theirs.

Names, attributes from `__dict__` and of classes, items of plain containers, constants, arithmetic and comparisons of
plain numbers. Never a property, never a call, but `len` of a built-in container.
"""

from __future__ import annotations

import ast
import operator
from types import FunctionType

from ...objects import FAST, locals_of
from . import inlined, source_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


class Unknown:
    """Stands for what cannot be read; `kind` says what it is, where that much is known."""

    __slots__ = ("kind",)

    def __init__(self, kind: str = "") -> None:
        self.kind = kind


_NUMBERS = (bool, int, float)
_PLAIN = (*_NUMBERS, str, type(None))
_CONTAINERS = (list, tuple, dict, set, frozenset, str, range)
_BINARY: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type, tuple[str, Any]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
}


_known: dict[int, dict[str, Any]] = {}  # locals by frame, for as long as one description takes


def forget() -> None:
    """Let go of what was read: a tensor must not live longer because we looked at it."""
    _known.clear()


def _locals(frame: FrameType) -> dict[str, Any]:
    if frame.f_code.co_flags & FAST != FAST:  # a module's own names
        return frame.f_locals
    if id(frame) not in _known:
        _known[id(frame)] = locals_of(frame)
    return _known[id(frame)]


def find(node: ast.expr, frame: FrameType) -> Any:
    """The object an expression stands for, or an Unknown."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        for space in (_locals(frame), frame.f_globals, frame.f_builtins):
            if node.id in space:
                return space[node.id]
        return Unknown()
    if isinstance(node, ast.Attribute):
        return attribute(find(node.value, frame), node.attr)
    if isinstance(node, ast.Subscript):
        held, key = find(node.value, frame), find(node.slice, frame)
        if type(held) in (dict, list, tuple) and type(key) in (int, str):
            try:
                return held[key]
            except (KeyError, IndexError, TypeError):
                return Unknown()
        return Unknown()
    return _computed(node, frame)


def _computed(node: ast.expr, frame: FrameType) -> Any:
    if isinstance(node, ast.UnaryOp):
        value = number(find(node.operand, frame))
        if isinstance(node.op, ast.USub) and type(value) in (int, float):
            return -value
        if isinstance(node.op, ast.Not) and type(value) in _PLAIN:
            return not value
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = number(find(node.left, frame)), number(find(node.right, frame))
        if type(left) in _NUMBERS and type(right) in _NUMBERS and (right or not isinstance(node.op, ast.Mod)):
            try:
                return _BINARY[type(node.op)](left, right)
            except (ArithmeticError, ValueError):
                return Unknown()
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        return compare(node.ops[0], find(node.left, frame), find(node.comparators[0], frame))
    elif (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1
    ):
        held = find(node.args[0], frame)
        if type(held) in _CONTAINERS:
            return len(held)
    return Unknown()


def attribute(held: Any, name: str) -> Any:
    """An attribute as it lies in the instance or its classes; what would have to be computed is not read."""
    if isinstance(held, Unknown):
        return held
    kinds = held.__mro__ if isinstance(held, type) else type(held).__mro__
    if not isinstance(held, type):
        try:
            own = object.__getattribute__(held, "__dict__")
        except AttributeError:
            own = {}
        if type(own) is dict and name in own:
            return own[name]
    for kind in kinds:
        if name in vars(kind):
            value = vars(kind)[name]
            if type(value).__name__ == "member_descriptor" and not isinstance(held, type):  # a slot
                try:
                    return value.__get__(held)
                except AttributeError:
                    return Unknown()
            return Unknown() if hasattr(type(value), "__get__") else value
    return Unknown()


def number(value: Any) -> Any:
    """numpy's numbers as Python's."""
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    return value


def compare(how: ast.cmpop, left: Any, right: Any) -> Any:
    left, right = number(left), number(right)
    if type(how) not in _COMPARE or type(left) not in _PLAIN or type(right) not in _PLAIN:
        return Unknown()
    try:
        return _COMPARE[type(how)][1](left, right)
    except TypeError:
        return Unknown()


def shown(value: Any) -> object:
    """A value as a fact holds it: plain ones as they are, others by the name of their type."""
    value = number(value)
    if isinstance(value, Unknown):
        return {"type": value.kind}
    if type(value) in _NUMBERS or value is None:
        return value if value == value and value not in (float("inf"), float("-inf")) else {"number": repr(value)}
    return value[:80] if type(value) is str else {"type": type(value).__name__}


def truth(value: Any) -> bool | None:
    """Whether it counts as true; None where only running something would tell."""
    value = number(value)
    if type(value) in _PLAIN or type(value) in _CONTAINERS:
        return bool(value)
    return None


def condition(node: ast.expr, frame: FrameType) -> dict[str, object]:
    """A condition piece by piece, each with its text and its value now."""
    text = source_text.text(node)[:200]
    if isinstance(node, ast.BoolOp):
        parts = [condition(part, frame) for part in node.values]
        values, deciding = [part["value"] for part in parts], isinstance(node.op, ast.Or)
        value = deciding if deciding in values else (None if None in values else not deciding)
        return {"text": text, "kind": "or" if deciding else "and", "value": value, "parts": parts}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        part = condition(node.operand, frame)
        value = None if part["value"] is None else not part["value"]
        return {"text": text, "kind": "not", "value": value, "parts": [part]}
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        left, right = find(node.left, frame), find(node.comparators[0], frame)
        return {
            "text": text,
            "kind": "compare",
            "value": truth(compare(node.ops[0], left, right)),
            "left": {"text": source_text.text(node.left), "value": shown(left)},
            "op": _COMPARE[type(node.ops[0])][0],
            "right": {"text": source_text.text(node.comparators[0]), "value": shown(right)},
            "names": names(node),
            "calls": calls(node),
        }
    if isinstance(node, ast.Call):
        answer = _answer(node, frame)
        if answer is not None:
            return {"text": text, "kind": "call", "value": None, "parts": [condition(answer, frame)]}
    value = find(node, frame)
    return {
        "text": text,
        "kind": "truth",
        "value": truth(value),
        "is": shown(value),
        "names": names(node),
        "calls": calls(node),
    }


def _answer(call: ast.Call, frame: FrameType) -> ast.expr | None:
    """What a function of the user's would give back, as an expression in the caller's names."""
    function = call.func
    if isinstance(function, ast.Attribute):
        owner: ast.expr | None = function.value
        held = find(function.value, frame)
        called = None if isinstance(held, Unknown) else _in_class(held, function.attr)
    else:
        held = find(function, frame)
        owner = None if isinstance(held, (Unknown, FunctionType)) else function
        called = held if owner is None else _in_class(held, "__call__")
    source = inlined.source_of(called)
    return None if source is None else inlined.returned(call, source, owner)


def _in_class(held: Any, name: str) -> Any:
    return next((vars(kind)[name] for kind in type(held).__mro__ if name in vars(kind)), None)


def calls(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Call) for each in ast.walk(node))


def names(node: ast.AST) -> list[str]:
    """Names, attributes and items an expression reads, as written; not those it calls, but what these are given."""
    found: list[str] = []

    def visit(each: ast.AST) -> None:
        if isinstance(each, ast.Call):
            for part in (*each.args, *(keyword.value for keyword in each.keywords)):
                visit(part)
        elif isinstance(each, (ast.Name, ast.Attribute, ast.Subscript)):
            found.append(source_text.text(each))
        else:
            for child in ast.iter_child_nodes(each):
                visit(child)

    visit(node)
    return list(dict.fromkeys(found))
