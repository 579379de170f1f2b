"""Values of the user's expressions, read without running anything of theirs.

Names, attributes from `__dict__` and of classes, items of plain containers, constants, arithmetic and comparisons of
plain numbers. Never a property, never a call, but `len` of a built-in container, `int` of a float, and the time.
"""

from __future__ import annotations

import ast
import operator
import sys
import time
from collections import deque
from collections.abc import Callable
from math import isfinite
from types import FrameType, FunctionType
from typing import Any

from ... import tensors
from ...objects import FAST, KEYS, UNKNOWN, attribute, entry, ids, locals_of, module_of
from .parsed_source import is_small

MOST_BITS = 1000  # larger whole numbers are not computed with
NUMBERS = ids(bool, int, float)
_PLAIN = NUMBERS | ids(str, type(None))
_CONTAINERS = ids(list, tuple, dict, set, frozenset, str, range, deque)
_INDEXED = ids(list, tuple)
_CLOCKS: dict[int, Any] = {id(clock): clock for clock in (time.time, time.monotonic, time.perf_counter)}
_IS_HEAP = 1 << 9  # flag of every class that is made by a `class` statement
_flags = type.__dict__["__flags__"].__get__


def _power(base: Any, exponent: Any) -> Any:
    return base**exponent if type(base) is type(exponent) is int and 0 <= exponent <= 64 else UNKNOWN


_BINARY: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
COMPARE: dict[type, tuple[Any, Any]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
}


class Scope(ast.NodeVisitor):
    """The names at one place of the user's code, and what expressions there stand for. It holds on to them: a tensor
    must not live longer because of it."""

    def __init__(self, *spaces: dict[str, Any]) -> None:
        self.spaces = spaces
        self.known: Callable[[str], ast.expr | None] | None = None

    def defined(self, name: str) -> ast.expr | None:
        """What a name that is not found here was given, where that is known."""
        return self.known(name) if self.known is not None and " in " in name else None

    def lend(self, names: dict[str, Any]) -> None:
        """More names that mean something here."""
        self.spaces = (*self.spaces, names) if names else self.spaces

    def find(self, node: ast.expr) -> Any:
        """The object an expression stands for, or UNKNOWN."""
        return self.visit(node) if is_small(node) else UNKNOWN

    def generic_visit(self, node: ast.AST) -> Any:
        return UNKNOWN

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def visit_Name(self, node: ast.Name) -> Any:
        found = (entry(space, node.id) for space in self.spaces)
        return next((value for value in found if value is not UNKNOWN), UNKNOWN)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        held = self.visit(node.value)
        return UNKNOWN if held is UNKNOWN else self.attribute(held, node.attr)

    def attribute(self, held: Any, name: str) -> Any:
        return attribute(held, name)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        held, key = self.visit(node.value), self.visit(node.slice)
        if type(held) is dict and (type(key) is int or type(key) is str):
            return entry(held, key) if len(held) <= KEYS else UNKNOWN
        if id(type(held)) in _INDEXED and type(key) is int and -len(held) <= key < len(held):
            return held[key]
        return UNKNOWN

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = number(self.visit(node.operand))
        if isinstance(node.op, ast.USub) and (type(value) is int or type(value) is float):
            return -value
        return not value if isinstance(node.op, ast.Not) and id(type(value)) in _PLAIN else UNKNOWN

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        compute = _BINARY.get(type(node.op))
        left, right = number(self.visit(node.left)), number(self.visit(node.right))
        if compute is None or not (_is_handy(left) and _is_handy(right)):
            return UNKNOWN
        try:
            return compute(left, right)
        except (ArithmeticError, ValueError):
            return UNKNOWN

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1:
            return UNKNOWN
        return compare(node.ops[0], self.visit(node.left), self.visit(node.comparators[0]))

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        holds = truth(self.visit(node.test))
        return UNKNOWN if holds is None else self.visit(node.body if holds else node.orelse)

    def clock(self, node: ast.expr) -> Any:
        """The clock that an expression reads, in seconds; None if it is anything else."""
        plain = isinstance(node, ast.Call) and not node.args and not node.keywords
        return _CLOCKS.get(id(self.find(node.func))) if plain else None  # type: ignore[attr-defined]

    def reads_clock(self, node: ast.expr | None) -> bool:
        inside = ast.walk(node) if node is not None and is_small(node) else ()
        return any(isinstance(inner, ast.Call) and self.clock(inner) is not None for inner in inside)

    def visit_Call(self, node: ast.Call) -> Any:
        clock = self.clock(node)
        if clock is not None:
            return clock()
        if not (isinstance(node.func, ast.Name) and node.func.id in ("len", "int") and len(node.args) == 1):
            return UNKNOWN
        held = self.visit(node.args[0])
        if node.func.id == "int":  # range(int(1e6))
            plain = type(held) is float and isfinite(held) and self.visit(node.func) is int
            return int(held) if plain else UNKNOWN
        return _count(held) if id(type(held)) in _CONTAINERS else UNKNOWN


def scope_of(frame: FrameType) -> Scope:
    own: Any = locals_of(frame) if frame.f_code.co_flags & FAST == FAST else frame.f_locals
    spaces = [own, frame.f_globals, frame.f_builtins]  # the first may be any mapping, where a class body is run
    return Scope(*(space for space in spaces if issubclass(type(space), dict)))


def cells(function: FunctionType) -> dict[str, Any]:
    """The names that a function shares with the one it was made in, and their values."""
    closure = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    return {name: cell.cell_contents for name, cell in closure if name != "__class__" and _is_set(cell)}


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def is_numpys(value: Any) -> bool:
    """Of numpy's own types, and no class made from one."""
    kind = type(value)
    return not _flags(kind) & _IS_HEAP and module_of(kind) == "numpy"


def number(value: Any) -> Any:
    """numpy's numbers as Python's, and tensors of one number in main memory."""
    if is_numpys(value):
        return value.item() if getattr(value, "shape", None) == () else value
    if not is_tensor(value) or not tensors.readable(value) or value.numel() != 1:
        return value
    try:
        return value.item()
    except RuntimeError:  # one of many that vmap goes through at once
        return value


def is_tensor(value: Any) -> bool:
    """A tensor of torch's own class."""
    torch = sys.modules.get("torch")
    return torch is not None and type(value) is getattr(torch, "Tensor", UNKNOWN)


def compare(how: ast.cmpop, left: Any, right: Any) -> Any:
    if not isinstance(how, (ast.Is, ast.IsNot)):
        left, right = number(left), number(right)
    if type(how) not in COMPARE or id(type(left)) not in _PLAIN or id(type(right)) not in _PLAIN:
        return UNKNOWN
    try:
        return COMPARE[type(how)][1](left, right)
    except TypeError:
        return UNKNOWN


def truth(value: Any) -> bool | None:
    """Whether it counts as true; None where only running something would tell."""
    value = number(value)
    return bool(value) if id(type(value)) in _PLAIN or id(type(value)) in _CONTAINERS else None


def _is_handy(value: Any) -> bool:
    return id(type(value)) in NUMBERS and (type(value) is not int or value.bit_length() <= MOST_BITS)


def _count(held: Any) -> Any:
    try:
        return len(held)
    except OverflowError:  # a range
        return UNKNOWN
