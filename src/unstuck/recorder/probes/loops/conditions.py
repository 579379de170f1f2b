"""A condition of the user's piece by piece, each with its text and what it comes to now.

A small function of the user's, or a property, reads as if it were written where it is used: `stopper.step(loss)` with
`return self.bad >= self.patience` is `stopper.bad >= stopper.patience`.
"""

from __future__ import annotations

import ast
import copy
import itertools
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from ...objects import UNKNOWN, class_name, ids, in_class
from ...records.loops import Comparison, Condition, Every, Side, Value
from . import parsed_source
from .expressions import COMPARE, MOST_BITS, NUMBERS, Scope, cells, compare, is_tensor, number, truth
from .limits import limits
from .outcomes import nan_by
from .parsed_source import Function, Guards, beneath

MOST_PARTS = 32  # of an `and` or `or`
MOST_CALLS = 3  # functions that are read one inside another
_ANSWERING = (ast.Return, ast.If, ast.Pass)
_FIXED = ids(ModuleType, BuiltinFunctionType, type)
TEXT, SHOWN = 200, 80  # letters of a condition, and of a text that is a value


def condition(node: ast.expr | str, scope: Scope, wanted: bool = True, calls: int = MOST_CALLS) -> Condition:
    """`wanted`: the value that leads to where the condition is on the way. A text stands for what is no expression."""
    if isinstance(node, str):
        return Condition(text=node[:TEXT], wanted=wanted)
    text = parsed_source.text(node)[:TEXT]
    if not parsed_source.is_small(node):
        return Condition(text=text, wanted=wanted)
    if isinstance(node, ast.BoolOp):
        return _joined(node, text, scope, wanted, calls)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        part = condition(node.operand, scope, calls=calls)
        value = None if part.value is None else not part.value
        return Condition(text=text, kind="not", value=value, parts=[part], wanted=wanted)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARE:
        return _compared(node, text, scope, wanted, calls)
    used = _used(node, scope) if calls else None
    pure = used is not None and _only_answers(used[1])
    answer = None if used is None else given_back_by(*used, whole=pure)
    if answer is not None:
        part = condition(answer, scope, calls=calls - 1)
        value = part.value if pure else None  # what else it does may change the answer
        return Condition(text=text, kind="call", value=value, parts=[part], wanted=wanted)
    value = scope.find(node)
    return Condition(
        text=text,
        kind="truth",
        value=truth(value),
        tested=shown(value),
        every=_every(node, scope),
        names=list(parsed_source.names(node)),
        asks=_asked(node, scope),
        calls=parsed_source.calls(node),
        wanted=wanted,
    )


def names_in(whole: Condition) -> list[str]:
    nan = whole.compared.nan_by if whole.compared is not None else []
    return [*whole.names, *whole.asks, *nan, *(name for part in whole.parts for name in names_in(part))]


def _joined(node: ast.BoolOp, text: str, scope: Scope, wanted: bool, calls: int) -> Condition:
    parts = [condition(part, scope, calls=calls) for part in node.values[:MOST_PARTS]]
    deciding = isinstance(node.op, ast.Or)
    values = [part.value for part in parts] + [None] * (len(node.values) > MOST_PARTS)
    value = deciding if deciding in values else None if None in values else not deciding
    return Condition(text=text, kind="or" if deciding else "and", value=value, parts=parts, wanted=wanted)


def _compared(node: ast.Compare, text: str, scope: Scope, wanted: bool, calls: int) -> Condition:
    sides = [_written_out(side, scope, calls) for side in (node.left, node.comparators[0])]
    how, (left, right) = node.ops[0], map(scope.find, sides)
    inside = _inside_abs(sides[0])
    nan = () if truth(compare(how, left, right)) else [name for side in sides for name in nan_by(side, scope)]
    compared = Comparison(
        left=Side(text=parsed_source.text(node.left), value=shown(left), limits=limits(sides[0], scope)),
        op=COMPARE[type(how)][0],
        right=Side(text=parsed_source.text(node.comparators[0]), value=shown(right), limits=limits(sides[1], scope)),
        difference=_difference(inside or sides[0], scope),
        apart=inside is not None,
        nan_by=list(dict.fromkeys(nan)),
        clock=any(map(scope.reads_clock, sides)),
    )
    return Condition(
        text=text,
        kind="compare",
        value=isinstance(how, ast.NotEq) if nan else truth(compare(how, left, right)),
        compared=compared,
        every=_every(sides[0], scope),
        names=list(dict.fromkeys(name for side in sides for name in parsed_source.names(side))),
        asks=_asked(node, scope),
        calls=any(map(parsed_source.calls, sides)),
        wanted=wanted,
    )


def _asked(node: ast.expr, scope: Scope) -> list[str]:
    """What may answer otherwise the next time: objects whose methods are called, and functions of nobody's library."""
    functions = [inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    owners = [each.value if isinstance(each, ast.Attribute) else each for each in functions]
    named = [each for each in owners if isinstance(each, (ast.Name, ast.Attribute, ast.Subscript))]
    return list(dict.fromkeys(parsed_source.text(each) for each in named if id(type(scope.find(each))) not in _FIXED))


def _inside_abs(node: ast.expr) -> ast.expr | None:
    """`abs(a - b)`, `(a - b).abs()` and what else is called so."""
    if not isinstance(node, ast.Call) or parsed_source.text(node.func).rpartition(".")[2] not in ("abs", "fabs"):
        return None
    if isinstance(node.func, ast.Attribute) and not node.args:
        return node.func.value
    return node.args[0] if len(node.args) == 1 else None


def _every(node: ast.expr, scope: Scope) -> Every | None:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mod):
        return None
    rounds = scope.find(node.right)
    if type(rounds) is not int or not 0 < rounds.bit_length() < MOST_BITS:
        return None
    return Every(counter=Side(text=parsed_source.text(node.left), value=shown(scope.find(node.left))), rounds=rounds)


def _difference(node: ast.expr, scope: Scope) -> list[Side]:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return []
    return [Side(text=parsed_source.text(part), value=shown(scope.find(part))) for part in (node.left, node.right)]


def _written_out(node: ast.expr, scope: Scope, calls: int) -> ast.expr:
    """What a property, or a plain function of the user's, gives back; everything else as it is, without `.item()`."""
    for _ in range(calls):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
            return node.func.value
        used = _used(node, scope)
        answer = given_back_by(*used) if used is not None and _only_answers(used[1]) else None
        if answer is None:
            break
        node = answer
    return node


Called = tuple[Function, ast.expr | None, tuple[str, ...]]


def called(call: ast.Call, scope: Scope) -> Called | None:
    """The user's function that a call runs, what stands there for `self`, if anything does, and the names that it
    shares with the function it was made in; the scope then knows these as `name in function`."""
    function = call.func
    owner = function.value if isinstance(function, ast.Attribute) else function
    held = scope.find(owner)
    kind = type(held) if held is not UNKNOWN else made_class(owner, scope)
    if kind is None:
        return None
    if owner is function and kind is FunctionType:
        source = parsed_source.source_of(held)
        shared = cells(held)
        scope.lend({f"{name} in {held.__code__.co_name}": value for name, value in shared.items()})
        return None if source is None else (source, None, tuple(shared))
    written = in_class(kind, function.attr if isinstance(function, ast.Attribute) else "__call__")
    source = None if written is None else parsed_source.source_of(written[1])
    return None if source is None else (source, owner, ())


def made_class(node: ast.expr, scope: Scope) -> type | None:
    """The class of an object that the expression itself makes: `Feed(rows)`."""
    kind = scope.find(node.func) if isinstance(node, ast.Call) else UNKNOWN
    return kind if type(kind) is type else None


def _used(node: ast.expr, scope: Scope) -> tuple[ast.Call, Function, ast.expr | None, tuple[str, ...]] | None:
    """The function or property of the user's that an expression asks, as a call of it."""
    if isinstance(node, ast.Attribute):
        held = scope.find(node.value)
        written = in_class(type(held), node.attr) if held is not UNKNOWN else None
        getter = written[1].fget if written is not None and type(written[1]) is property else None
        source = parsed_source.source_of(getter)
        return None if source is None else (_as_call(node), source, node.value, ())
    found = called(node, scope) if isinstance(node, ast.Call) else None
    return None if found is None else (node, *found)  # type: ignore[return-value]


@lru_cache(maxsize=256)
def _only_answers(function: Function) -> bool:
    """It changes nothing: conditions and answers are all there is in it."""
    statements = [placed.statement for placed in beneath(function.body)]
    text = [each for each in statements if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)]
    return all(isinstance(each, _ANSWERING) or each in text for each in statements)


@lru_cache(maxsize=512)
def _as_call(node: ast.expr) -> ast.Call:
    return ast.copy_location(ast.Call(node, [], []), node)


def shown(value: Any) -> Value:
    """A value as a record holds it: plain ones as they are, others by the name of their type."""
    in_place, value = is_tensor(value), number(value)
    kind = type(value)
    if value is UNKNOWN:
        return Value()
    if in_place and id(kind) in NUMBERS:  # a number that can change where nothing is assigned
        return Value(kind="object", text=f"{value:.6g}", number=value)
    if value is None:
        return Value(kind="none", text="None")
    if kind is bool:
        return Value(kind="bool", text=str(value))
    if kind is float or (kind is int and value.bit_length() < MOST_BITS):
        return Value(kind="number", text=repr(value), number=value)
    if kind is int:
        return Value(
            kind="number", text=f"a number of {value.bit_length():,} bits", number=1e308 if value > 0 else -1e308
        )
    return Value(kind="text", text=repr(value[:SHOWN])) if kind is str else Value(kind="object", text=class_name(kind))


# --- functions as if they were written where they are called -------------------------------------------------------


@lru_cache(maxsize=512)
def given_back_by(
    call: ast.Call, function: Function, owner: ast.expr | None, shared: tuple[str, ...] = (), *, whole: bool = False
) -> ast.expr | None:
    """What the call gives back, in the caller's own names; None unless the function has one answer that matters.
    `whole`: with the conditions on the way to it, where every other answer is false."""
    returns = [
        (placed, placed.statement.value)
        for placed in beneath(function.body)
        if isinstance(placed.statement, ast.Return) and placed.statement.value is not None
    ]
    telling = [(at, value) for at, value in returns if not isinstance(value, ast.Constant) or value.value]
    if len(telling) != 1:
        return None
    placed, value = telling[0]
    tests = _all_of(placed.guards) if whole or isinstance(value, ast.Constant) else None
    answer = tests if isinstance(value, ast.Constant) else _both(tests, value)
    if answer is None:
        return None
    return in_callers_names(answer, call, (function, owner, shared))


def in_callers_names(node: ast.expr, call: ast.Call, found: Called) -> ast.expr:
    """What a called function writes, as its caller would write it."""
    function, owner, shared = found
    changed: ast.expr = _Renamed(function, owner, call, shared).visit(copy.deepcopy(node))
    return ast.fix_missing_locations(changed)


def _all_of(guards: Guards) -> ast.expr | None:
    """The conditions on the way to `return True`, as one; None if there are none, or some that are no expressions."""
    tests = [
        guard if wanted else ast.copy_location(ast.UnaryOp(ast.Not(), guard), guard)
        for guard, wanted in guards
        if not isinstance(guard, str)
    ]
    if not tests or len(tests) < len(guards):
        return None
    return tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(ast.And(), tests), tests[0])


def _both(tests: ast.expr | None, value: ast.expr) -> ast.expr:
    return value if tests is None else ast.copy_location(ast.BoolOp(ast.And(), [tests, value]), value)


@lru_cache(maxsize=128)
def seen_from(
    function: Function, owner: ast.expr | None, call: ast.Call | None = None, shared: tuple[str, ...] = ()
) -> list[ast.stmt]:
    """The body of a method as it reads outside, with the object's own name for `self`, and what the call gives it for
    its parameters where there is one call only."""
    return _changed(function.body, _Renamed(function, owner, call, shared))


def renamed(body: list[ast.stmt], given: dict[str, ast.expr]) -> list[ast.stmt]:
    """Statements with other expressions in the place of some names."""
    return _changed(body, _Given(given))


def _changed(body: list[ast.stmt], change: _Given) -> list[ast.stmt]:
    return [ast.fix_missing_locations(change.visit(copy.deepcopy(statement))) for statement in body]


class _Given(ast.NodeTransformer):
    """Names become what they stand for."""

    def __init__(self, given: dict[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._given:
            return ast.copy_location(copy.deepcopy(self._given[node.id]), node)
        return node


class _Renamed(_Given):
    """Parameters become what they were given, the function's other names ones that mean nothing to the caller."""

    def __init__(
        self, function: Function, owner: ast.expr | None, call: ast.Call | None, shared: tuple[str, ...] = ()
    ) -> None:
        names = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
        super().__init__({})
        if owner is not None and names:
            self._given[names.pop(0)] = owner
        self._rest: tuple[str, list[ast.expr]] | None = None
        if call is not None:
            plain = list(itertools.takewhile(lambda each: not isinstance(each, ast.Starred), call.args))
            self._given.update(zip(names, plain, strict=False))
            if function.args.vararg is not None and len(plain) == len(call.args):
                self._rest = function.args.vararg.arg, plain[len(names) :]
            self._given.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None})
        stored = [
            node.id
            for node in parsed_source.own_nodes(function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        keywords = [parameter.arg for parameter in function.args.kwonlyargs]
        self._hidden = {*names, *stored, *keywords, *shared} - self._given.keys()
        self._function = function.name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._hidden:
            return ast.copy_location(ast.Name(f"{node.id} in {self._function}", node.ctx), node)
        return super().visit_Name(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`callback.on_end(*args)` is given what its function was given for `*args`."""
        self.generic_visit(node)
        last = node.args[-1] if node.args else None
        if self._rest is not None and isinstance(last, ast.Starred) and isinstance(last.value, ast.Name):
            name, rest = self._rest
            node.args[-1:] = copy.deepcopy(rest) if last.value.id == name else [last]
        return node
