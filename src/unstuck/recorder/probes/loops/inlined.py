"""A small function of the user's as if it were written where it is called: read, never run.

`stopper.step(loss)` with `return self.bad >= self.patience` reads as `stopper.bad >= stopper.patience`.
"""

from __future__ import annotations

import ast
import copy
import linecache
import os
import stat
from functools import lru_cache
from types import CodeType, FunctionType, MethodType

from ... import user_code
from ...objects import class_dict, mro_of, some_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Function = ast.FunctionDef | ast.AsyncFunctionDef

_LARGEST = 300_000  # bytes of a file; parsing more would be felt
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINED = (*_FUNCTIONS, ast.ClassDef)


@lru_cache(maxsize=32)
def tree_of(path: str) -> ast.Module | None:
    """The parsed source of a file, kept."""
    source = source_bytes(path)
    return None if source is None else parsed(source)


def source_bytes(path: str, most: int = _LARGEST) -> bytes | None:
    """The file, or the cell of a notebook; None where it is too large or not there. A script may also come through a
    pipe: what is in there is not ours to take."""
    try:
        about = os.stat(path)
        if stat.S_ISREG(about.st_mode) and about.st_size < most:
            with open(path, "rb") as file:
                return file.read(most)
    except (OSError, ValueError):
        cell = linecache.cache.get(path)
        if type(cell) is tuple and len(cell) == 4 and sum(map(len, cell[2])) < most:
            return "".join(cell[2]).encode()
    return None


def parsed(source: bytes | str) -> ast.Module | None:
    """Warnings about the source were given when it was imported. `catch_warnings` would make Python forget which ones
    it has given already, so that it gives them again: only the list of filters is put aside."""
    import warnings

    before = warnings.filters
    warnings.filters = [("ignore", None, Warning, None, 0)]
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    finally:
        warnings.filters = before


def source_of(function: Any) -> Function | None:
    """The definition of a Python function in one of the user's files."""
    if type(function) is MethodType:
        function = function.__func__
    if type(function) is not FunctionType or not user_code.is_user_file(function.__code__.co_filename):
        return None
    return definition(function.__code__)  # type: ignore[return-value]  # the code of a function


def definition(code: CodeType) -> Function | ast.ClassDef | None:
    """What this is the code of."""
    tree = tree_of(code.co_filename)
    found = _definitions(tree).get(code.co_firstlineno, ()) if tree is not None else ()
    return next((node for node in found if node.name == code.co_name), None)


@lru_cache(maxsize=32)
def _definitions(tree: ast.Module) -> dict[int, list[Function | ast.ClassDef]]:
    """By the line at which they begin, decorators included."""
    found: dict[int, list[Function | ast.ClassDef]] = {}
    for node in ast.walk(tree):
        if isinstance(node, _DEFINED):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found.setdefault(first, []).append(node)
    return found


def methods_of(thing: object) -> Iterator[Function]:
    """Definitions of the methods of an object's class, and of the user's classes it comes from."""
    for kind in mro_of(type(thing)):
        for _, value in some_of(class_dict(kind).items()):
            found = source_of(value)
            if found is not None:
                yield found


@lru_cache(maxsize=512)
def returned(call: ast.Call, function: Function, owner: ast.expr | None) -> ast.expr | None:
    """What the call gives back, in the caller's own names; None unless the function has one answer that matters."""
    answers = [node.value for node in _own_nodes(function) if isinstance(node, ast.Return) and node.value is not None]
    telling = [value for value in answers if not isinstance(value, ast.Constant)]
    if len(telling) != 1 or any(value.value for value in answers if isinstance(value, ast.Constant)):
        return None
    answer: ast.expr = ast.fix_missing_locations(_Renamed(function, owner, call).visit(copy.deepcopy(telling[0])))
    return answer


@lru_cache(maxsize=128)
def seen_from(function: Function, owner: ast.expr) -> list[ast.stmt]:
    """The body of a method as it reads outside, with the object's own name for `self`."""
    renamed = _Renamed(function, owner, None)
    return [ast.fix_missing_locations(renamed.visit(copy.deepcopy(statement))) for statement in function.body]


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


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
            return ast.copy_location(copy.deepcopy(self._meant[node.id]), node)
        if node.id in self._hidden:
            return ast.copy_location(ast.Name(f"{node.id} in {self._of}", node.ctx), node)
        return node
