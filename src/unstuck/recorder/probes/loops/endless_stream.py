"""Whether a stream's code goes round forever: read from its source, not run.

A stream may repeat its samples on purpose, so and so often. Only a loop around its `yield` that has no end, or one of
`itertools` that has none, shows that it will not stop.
"""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any

from ...objects import class_name, instance_dict, module_of, some_of
from ..data.sample_code import method_of, names_in
from .parsed_source import Function, beneath, called, function_alone, is_generator, own_nodes
from .stays_true import stays_true

MOST_FUNCTIONS = 40  # of the stream that are read
ROUNDS = ("cycle", "count", "repeat")
_BOUNDED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.NotEq)
_LIBRARIES = ("builtins", "torch", "numpy")
_MAKING = (  # functions and methods that make a tensor, an array or a container: never None
    *("tensor", "as_tensor", "from_numpy", "stack", "cat", "concatenate", "array", "asarray", "zeros", "ones", "full"),
    *("rand", "randn", "randint", "view", "reshape", "unsqueeze", "squeeze", "permute", "transpose", "float", "long"),
    *("to", "list", "tuple", "dict"),
)
_MAY_END = frozenset(("next", "__next__", "send", "throw", "exec", "eval"))
"""Called by these names, something else may raise StopIteration."""
_NEVER_NONE = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.BinOp, ast.Compare)


def goes_round(stream: Any) -> bool:
    """The code that gives its samples, or that of what it holds, has a loop without an end."""
    things = [stream, *(value for _, value in some_of((instance_dict(stream) or {}).items()))]
    kinds = [type(thing) for thing in things]
    if any(module_of(kind) == "itertools" and class_name(kind) in ROUNDS for kind in kinds):
        return True
    read: set[FunctionType] = set()
    waiting = [(kind, method) for kind in kinds if (method := method_of(kind, "__iter__")) is not None]
    while waiting and len(read) < MOST_FUNCTIONS:
        kind, function = waiting.pop()
        if function in read or _is_of_library(function):
            continue
        read.add(function)
        written = function_alone(function.__code__)
        if written is not None and _endless(written, function.__name__):
            return True
        for name in names_in(function):
            called = method_of(kind, name) or dict.get(function.__globals__, name)
            if type(called) is FunctionType:
                waiting.append((kind, called))
    return False


def endless_statement(function: Function) -> ast.stmt | None:
    """The statement of a generator that goes on yielding forever, whatever happens; None if it may end."""
    for placed in beneath(function.body):
        statement = placed.statement
        if isinstance(statement, ast.Return):
            return None  # perhaps it never comes further than this
        if not placed.guards and _yields_forever(statement, function):
            return statement
    return None


def _yields_forever(statement: ast.stmt, function: Function) -> bool:
    if isinstance(statement, ast.While):
        always = isinstance(statement.test, ast.Constant) and bool(statement.test.value)
        left = not _gives(statement) or is_left(statement)
        return not left and (always or stays_true(statement, function))
    if isinstance(statement, ast.For):
        return _is_round(statement.iter) and _gives(statement) and not is_left(statement)
    given = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(given, ast.YieldFrom) and _is_round(given.value)


def _is_round(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called(node) in ROUNDS and not (called(node) == "repeat" and _times(node))


def never_gives_none(function: Function) -> bool:
    """A function of which every answer is a tensor, a number or a container, and that cannot end an iteration."""
    nodes = list(own_nodes(function))
    answers = [node.value for node in nodes if isinstance(node, ast.Return)]
    if not isinstance(function.body[-1], ast.Return) or is_generator(function):
        return False
    if any(isinstance(node, ast.Raise) or called(node) == "next" for node in nodes):
        return False
    given: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            given.setdefault(node.targets[0].id, []).append(node.value)
    return all(_is_something(answer, given) for answer in answers)


def gives_itself(function: Function) -> bool:
    """An `__iter__` whose only answer is `self`."""
    answers = [node.value for node in own_nodes(function) if isinstance(node, ast.Return)]
    return not is_generator(function) and all(isinstance(each, ast.Name) and each.id == "self" for each in answers)


def never_stops(kind: type) -> FunctionType | None:
    """The `__next__` of a class, if nothing in it, or in functions of the user's that it calls, can raise
    StopIteration."""
    first = method_of(kind, "__next__")
    waiting, read = [first] if first is not None else [], set[FunctionType]()
    while waiting:
        function = waiting.pop()
        written = function_alone(function.__code__)
        if written is None or len(read) > MOST_FUNCTIONS or is_generator(written):
            return None
        read.add(function)
        nodes = list(own_nodes(written))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        if any(isinstance(node, ast.Raise) for node in nodes) or any(called(call) in _MAY_END for call in calls):
            return None
        for call in calls:
            known = method_of(kind, called(call)) or dict.get(function.__globals__, called(call))
            if type(known) is FunctionType and not _is_of_library(known) and known not in read:
                waiting.append(known)
    return first


def _is_something(node: ast.expr | None, given: dict[str, list[ast.expr]]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in given and all(_is_something(value, {}) for value in given[node.id])
    if isinstance(node, ast.Call):
        return called(node) in _MAKING
    if isinstance(node, ast.Subscript):  # a slice gives what it is taken from
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return any(isinstance(part, ast.Slice) for part in parts)
    return isinstance(node, _NEVER_NONE) or (isinstance(node, ast.Constant) and node.value is not None)


def _is_of_library(function: FunctionType) -> bool:
    module = function.__module__
    return type(module) is str and module.partition(".")[0] in _LIBRARIES


def _endless(tree: Function, name: str) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.While) and _gives(node) and not is_left(node):
            if not _bounded(node.test) or stays_true(node, tree):
                return True
        elif isinstance(node, ast.expr) and _is_round(node):
            return True
        if isinstance(node, ast.YieldFrom) and _itself(node.value, name):
            return True
    return False


def _gives(loop: ast.While | ast.For) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(loop))


def _bounded(test: ast.expr) -> bool:
    """It counts something, or asks something that may come to an end."""
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) and any(map(_bounded, test.values))
    return isinstance(test, ast.Compare) and any(isinstance(each, _BOUNDED) for each in test.ops)


def is_left(loop: ast.While | ast.For) -> bool:
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


def _times(node: ast.Call) -> bool:
    return len(node.args) > 1 or bool(node.keywords)


def _itself(value: ast.expr, name: str) -> bool:
    if isinstance(value, ast.Call):
        again = called(value) == "iter" and bool(value.args) and _itself(value.args[0], name)
        return again or called(value) == name
    return isinstance(value, ast.Name) and value.id == "self"
