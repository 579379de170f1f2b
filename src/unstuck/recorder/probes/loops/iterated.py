"""What a `for` goes through: something that ends by itself, something endless, or something nobody knows."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from types import FunctionType, GeneratorType
from typing import Any

from ... import lengths, user_code
from ...objects import UNKNOWN, class_name, file_of, ids, in_class
from ...records.loops import Iterated
from . import parsed_source
from .conditions import MOST_CALLS, Called, called, given_back_by, in_callers_names, made_class
from .endless_stream import endless_statement, gives_itself, is_left, never_gives_none, never_stops
from .expressions import Scope, is_numpys
from .fed_by_queue import endless_feeder
from .parsed_source import Function, text

MOST_ZIPPED = 16  # that a `zip` goes through
_THROUGH = frozenset(("enumerate", "tqdm", "track", "iter", "progress_bar", "prefetch", "auto"))
_ENDING = frozenset(("range", "islice", "trange", "list", "tuple", "sorted", "reversed", "takewhile", "items", "keys"))
_ENDLESS = frozenset(("count", "cycle"))
_BOUNDED = ids(list, tuple, dict, set, frozenset, str, bytes, range)
_ROUND = ids(itertools.count, itertools.cycle)
_WRITTEN_OUT = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.Constant)


def iterated(node: ast.expr, scope: Scope, calls: int = MOST_CALLS) -> Iterated:
    """`calls`: functions of the user's that are read one inside another."""
    written = text(node)[:120]
    if isinstance(node, ast.Call):
        name = text(node.func).rpartition(".")[2]
        if name == "iter" and len(node.args) == 2:
            return _until_none(node, scope, written)
        if name in _THROUGH and node.args and parsed_source.is_small(node):
            return iterated(node.args[0], scope, calls)
        if name == "zip" and node.args:
            return _shortest([iterated(part, scope, calls) for part in node.args[:MOST_ZIPPED]], written)
        kind = made_class(node, scope)
        if kind is not None and in_class(kind, "__iter__") is not None and file_of(kind):
            return _by_iter(node, kind, scope, calls)
        found = called(node, scope) if calls else None
        ends = _call_ends(name, node.args)
        return Iterated(text=written, ends=ends) if found is None else _made(node, found, scope, calls)
    if isinstance(node, _WRITTEN_OUT):
        listed = isinstance(node, (ast.List, ast.Tuple)) and not any(isinstance(e, ast.Starred) for e in node.elts)
        return Iterated(text=written, ends=True, length=len(node.elts) if listed else None)  # type: ignore[union-attr]
    return _thing(node, scope.find(node), scope, calls)


def _shortest(zipped: list[Iterated], written: str) -> Iterated:
    """What `zip` ends with: one that ends by itself; where all go by an index, the shortest; where none ends, never."""
    if any(part.ends for part in zipped):
        return Iterated(text=written, ends=True)
    if all(part.ends is False for part in zipped):
        return replace(zipped[0], text=written)
    if all(part.by_index and part.length is not None for part in zipped):
        return min(zipped, key=lambda part: part.length or 0)
    return Iterated(text=written)


def _call_ends(name: str, arguments: list[ast.expr]) -> bool | None:
    if name in _ENDING:
        return True
    return False if name in _ENDLESS or (name == "repeat" and len(arguments) == 1) else None


def _made(call: ast.Call, found: Called, scope: Scope, calls: int) -> Iterated:
    """By a function of the user's: a generator, or one that gives back something to go through."""
    function = found[0]
    written = text(call)[:120]
    if parsed_source.is_generator(function):
        source = _passed_on(function)
        if source is not None and calls:  # it gives no more than it goes through
            through = iterated(in_callers_names(source, call, found), scope, calls - 1)
            if through.by_index:
                return replace(through, text=written)
        return _generated(function, _file_of(call, scope), written)
    given = given_back_by(call, *found)
    if given is None:
        return Iterated(text=written)
    made = iterated(given, scope, calls - 1)
    here = made.maker or (_file_of(call, scope), given.lineno, function.name)
    return replace(made, text=written, maker=here if made.ends is False else None)


def _passed_on(function: Function) -> ast.expr | None:
    """The parameter, or what belongs to one, whose elements a generator gives on, one by one or some at a time: it has
    one loop, and one `yield` in it."""
    nodes = list(parsed_source.own_nodes(function))
    loops = [node for node in nodes if isinstance(node, (ast.For, ast.While))]
    yields = [node for node in nodes if isinstance(node, (ast.Yield, ast.YieldFrom))]
    if len(loops) != 1 or len(yields) != 1 or loops[0] not in function.body:
        return None
    loop = loops[0]
    if not isinstance(loop, ast.For) or isinstance(yields[0], ast.YieldFrom) or yields[0] not in ast.walk(loop):
        return None
    assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names = {node.id for node in ast.walk(loop.iter) if isinstance(node, ast.Name)}
    return None if names & assigned or is_left(loop) else loop.iter


def _generated(function: Function, file: str, written: str) -> Iterated:
    again = endless_statement(function)
    if again is None:
        return Iterated(text=written, type="generator")
    site = (file, again.lineno, function.name)
    tested = text(again.test) if isinstance(again, ast.While) and not isinstance(again.test, ast.Constant) else ""
    return Iterated(text=written, type="generator", ends=False, maker=site, stays_true=tested)


def _until_none(call: ast.Call, scope: Scope, written: str) -> Iterated:
    """`iter(read, None)`: it ends where the user's function gives back None."""
    draws, sentinel = call.args
    found = called(ast.copy_location(ast.Call(draws, [], []), call), scope)
    until_none = isinstance(sentinel, ast.Constant) and sentinel.value is None
    if found is None or not until_none or not never_gives_none(found[0]):
        return Iterated(text=written)
    function = found[0]
    site = (_file_of(ast.Call(draws, [], []), scope), function.lineno, function.name)
    return Iterated(text=written, type="callable_iterator", ends=False, maker=site)


def _file_of(call: ast.Call, scope: Scope) -> str:
    """The file of the user's function that a call runs."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    held, name = scope.find(owner), call.func.attr if isinstance(call.func, ast.Attribute) else "__call__"
    kind = made_class(owner, scope) or type(held)
    written = held if type(held) is FunctionType else (in_class(kind, name) or (None, None))[1]
    site = user_code.code_site(written) if type(written) is FunctionType else None
    return site[0] if site else ""


def _by_iter(node: ast.expr, kind: type, scope: Scope, calls: int) -> Iterated:
    """An object with an `__iter__`, by what that gives."""
    by_call = ast.copy_location(ast.Call(ast.Attribute(node, "__iter__", ast.Load()), [], []), node)
    found = called(by_call, scope) if calls else None
    made = Iterated() if found is None else _made(by_call, found, scope, calls)
    if found is not None and made.ends is None:
        feeder = endless_feeder(found[0], parsed_source.methods_in(kind))
        draws = never_stops(kind) if gives_itself(found[0]) else None
        if feeder is not None:
            site = (_file_of(by_call, scope), feeder[0].lineno, feeder[1].name)
            made = replace(made, ends=False, maker=site)
        elif draws is not None:
            made = replace(made, ends=False, maker=user_code.code_site(draws))
    return replace(made, text=text(node)[:120], type=class_name(kind))


def _thing(node: ast.expr, thing: Any, scope: Scope, calls: int) -> Iterated:
    written = text(node)[:120]
    if thing is UNKNOWN:
        return Iterated(text=written)
    kind = type(thing)
    if id(kind) in _BOUNDED or is_numpys(thing):
        return Iterated(text=written, ends=True, type=class_name(kind), length=lengths.length(thing))
    if id(kind) in _ROUND:
        return Iterated(text=written, ends=False, type=class_name(kind))
    if kind is GeneratorType:
        code = thing.gi_code
        function = parsed_source.definition(code) if user_code.is_user_file(code.co_filename) else None
        plain = Iterated(text=written, type="generator")
        if not isinstance(function, parsed_source.FUNCTIONS):
            return plain
        return _generated(function, user_code.absolute(code.co_filename), written)
    if in_class(kind, "__iter__") is not None:
        return _by_iter(node, kind, scope, calls)
    item = in_class(kind, "__getitem__")
    if item is None:
        return Iterated(text=written, type=class_name(kind))
    site = user_code.code_site(item[1]) if type(item[1]) is FunctionType else None
    return Iterated(text=written, type=class_name(kind), by_index=True, length=lengths.length(thing), item_site=site)
