"""Objects that a loop's function holds and calls: a method of theirs may change what the loop tests.

`while not self.state.stop` with a callback in `self.callbacks` whose `on_log(state)` sets `state.stop`: the statement
reads as if it stood in the loop, with `self.callbacks[0]` for the callback's `self`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...objects import file_of, ids, instance_dict, some_items, some_of
from . import parsed_source
from .conditions import seen_from
from .expressions import Scope
from .parsed_source import Function, expression, text

MOST_OBJECTS = 200  # that are looked at
MOST_DEEP = 3  # self.trainer.callbacks[0]
_LISTED = ids(list, tuple, dict)
_PLACES = ids(str, int)


def as_seen(method: Function, statement: ast.stmt, name: str, scope: Scope) -> list[ast.stmt] | None:
    """The body of a method in the names of the loop's function, if this holds one object that has the method; what the
    statement stores into by a parameter is taken for the object that `name` is an attribute of."""
    node = expression(name)
    parameters = [parameter.arg for parameter in method.args.args][1:]
    stored = [
        each for each in ast.walk(statement) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    ]
    bases = {text(each.value) for each in stored if isinstance(node, ast.Attribute) and each.attr == node.attr}
    holders = [path for path, thing in _held(scope) if _has(thing, method)] if bases else []
    if len(holders) != 1:
        return None
    owner = node.value  # type: ignore[attr-defined]
    given = [owner if each in bases else ast.Name(f"{each} in {method.name}", ast.Load()) for each in parameters]
    return seen_from(method, expression(holders[0]), ast.Call(ast.Name(method.name, ast.Load()), given, []))


def _has(thing: object, method: Function) -> bool:
    known = parsed_source.methods_of(thing)
    return any(each.lineno == method.lineno and each.name == method.name for each in known)


def _held(scope: Scope) -> Iterator[tuple[str, object]]:
    """Objects of the user's classes that the function's own names lead to, with the path to each; each once."""
    waiting = [(name, value, 0) for name, value in some_of(scope.spaces[0].items()) if type(name) is str]
    seen: set[int] = set()
    for path, thing, deep in waiting:  # which grows meanwhile
        if len(seen) > MOST_OBJECTS or id(thing) in seen:
            continue
        seen.add(id(thing))
        inner: list[tuple[str, object]] = []
        if id(type(thing)) in _LISTED:
            inner = [(f"{path}[{key!r}]", value) for key, value in some_items(thing) if id(type(key)) in _PLACES]
        elif file_of(type(thing)):
            yield path, thing
            own = instance_dict(thing) or {}
            inner = [(f"{path}.{key}", value) for key, value in some_of(own.items()) if type(key) is str]
        waiting += [(each, value, deep + 1) for each, value in inner if deep < MOST_DEEP]
