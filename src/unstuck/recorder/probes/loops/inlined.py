"""A small function of the user's as if it were written where it is called: read, never run.

`stopper.step(loss)` with `return self.bad >= self.patience` reads as `stopper.bad >= stopper.patience`.
"""

from __future__ import annotations

import ast
import os
from types import CodeType, FunctionType, MethodType

from ... import user_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Function = ast.FunctionDef | ast.AsyncFunctionDef

_LARGEST = 300_000  # bytes of a file; parsing more would be felt
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_trees: dict[str, ast.Module | None] = {}
_sources: dict[CodeType, Function | None] = {}
_returned: dict[tuple[ast.AST, ast.AST], ast.expr | None] = {}
_seen: dict[tuple[ast.AST, ast.AST], list[ast.stmt]] = {}


def tree_of(path: str) -> ast.Module | None:
    """The parsed source of a file, kept."""
    if path not in _trees:
        _trees[path] = None
        import warnings

        try:
            if os.path.getsize(path) < _LARGEST:
                with open(path, "rb") as file, warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    _trees[path] = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError, RecursionError):
            pass
    return _trees[path]


def source_of(function: Any) -> Function | None:
    """The definition of a Python function in one of the user's files."""
    if isinstance(function, MethodType):
        function = function.__func__
    if not isinstance(function, FunctionType):
        return None
    if function.__code__ not in _sources:
        _sources[function.__code__] = _source(function)
    return _sources[function.__code__]


def _source(function: FunctionType) -> Function | None:
    if not user_code.is_user_file(function.__code__.co_filename):
        return None
    tree = tree_of(function.__code__.co_filename)
    first = function.__code__.co_firstlineno
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, _FUNCTIONS) and node.name == function.__name__ and _begins(node) == first:
            return node
    return None


def _begins(node: Function) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def methods_of(thing: object) -> Iterator[Function]:
    """Definitions of the methods of an object's class, and of the user's classes it comes from."""
    for kind in type(thing).__mro__:
        for value in vars(kind).values():
            found = source_of(value)
            if found is not None:
                yield found


def returned(call: ast.Call, function: Function, owner: ast.expr | None) -> ast.expr | None:
    """What the call gives back, in the caller's own names; None unless the function has one answer that matters."""
    if (call, function) not in _returned:
        _returned[call, function] = _answer(call, function, owner)
    return _returned[call, function]


def _answer(call: ast.Call, function: Function, owner: ast.expr | None) -> ast.expr | None:
    answers = [node.value for node in _own_nodes(function) if isinstance(node, ast.Return) and node.value is not None]
    telling = [value for value in answers if not isinstance(value, ast.Constant)]
    if len(telling) != 1 or any(value.value for value in answers if isinstance(value, ast.Constant)):
        return None
    answer: ast.expr = ast.fix_missing_locations(_Renamed(function, owner, call).visit(_copy(telling[0])))
    return answer


def seen_from(function: Function, owner: ast.expr) -> list[ast.stmt]:
    """The body of a method as it reads outside, with the object's own name for `self`."""
    if (function, owner) not in _seen:
        renamed = _Renamed(function, owner, None)
        body = [ast.fix_missing_locations(renamed.visit(_copy(statement))) for statement in function.body]
        _seen[function, owner] = body
    return _seen[function, owner]


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


def _copy(node: Any) -> Any:
    import copy

    return copy.deepcopy(node)


class _Renamed(ast.NodeTransformer):
    """Parameters become what they were given, the function's other names ones that mean nothing to the caller."""

    def __init__(self, function: Function, owner: ast.expr | None, call: ast.Call | None) -> None:
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        self._meant: dict[str, ast.expr] = {}
        if owner is not None and names:
            self._meant[names.pop(0)] = owner
        if call is not None:
            self._meant.update(zip(names, call.args, strict=False))
            self._meant.update({each.arg: each.value for each in call.keywords if each.arg is not None})
        stored = [n.id for n in _own_nodes(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self._hidden = {*names, *stored, *(each.arg for each in function.args.kwonlyargs)} - self._meant.keys()
        self._of = function.name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._meant:
            meant: ast.expr = ast.copy_location(_copy(self._meant[node.id]), node)
            return meant
        if node.id in self._hidden:
            return ast.copy_location(ast.Name(f"{node.id} in {self._of}", node.ctx), node)
        return node
