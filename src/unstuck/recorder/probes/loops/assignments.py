"""What changes the names that a loop tests: statements in it, in methods of their classes, elsewhere in the file."""

from __future__ import annotations

import ast
from types import SimpleNamespace

from ...objects import UNKNOWN, class_name, file_of, ids, module_of, mro_of
from ...records.loops import Assignment
from . import inlined, source_text
from .conditions import condition
from .statements import beneath, gives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .statements import Given, Placed
    from .values import Scope

    Assigned = dict[str, list[Assignment]]

MOST = 32
"""Statements a name; one more stands for all others."""
_MAKING = ("__init__", "__new__", "__post_init__", "__setstate__")
_PLAIN_OWNERS = ids(dict, SimpleNamespace)
_HARMLESS_BASES = ("typing", "abc", "enum", "collections")


def assignments(
    body: list[ast.stmt], function: ast.AST, tree: ast.Module, wanted: set[str], scope: Scope
) -> dict[str, list[Assignment]]:
    """By name: every statement that gives it a value while the loop runs, how, and under which conditions. Those in
    other functions of the file are marked `elsewhere`; of these, the ones that make an object do not count."""
    found: Assigned = {name: [] for name in sorted(wanted)}
    for placed in beneath(body):
        for name, kind in gives(placed.statement):
            if name in found:
                _add(found[name], placed, kind, scope)
    read = _in_methods(found, getattr(function, "name", ""), scope)
    for name, given in found.items():
        for other, statement in source_text.stores(tree).get(_last_part(name), ()):
            if not (_same(other, function) or other.name in _MAKING or other in read or len(given) > MOST):
                text = source_text.first_line(statement)
                given.append(Assignment(line=statement.lineno, text=text, elsewhere=True, unread=True))
    return found


def _same(one: ast.AST, other: ast.AST) -> bool:
    """The same function; the file may have been parsed again meanwhile."""
    return isinstance(other, type(one)) and one.lineno == other.lineno  # type: ignore[attr-defined]


def _add(given: list[Assignment], placed: Placed, kind: Given, scope: Scope, elsewhere: bool = False) -> None:
    statement = placed.statement
    if len(given) > MOST:
        return
    full = len(given) == MOST
    given.append(
        Assignment(
            line=statement.lineno,
            kind=kind,
            text=source_text.first_line(statement),
            elsewhere=elsewhere or full,
            unread=full,
            guards=[] if full else [condition(guard, scope, way) for guard, way in placed.guards],
        )
    )


def _in_methods(found: Assigned, inside: str, scope: Scope) -> list[ast.AST]:
    """Statements in methods of the tested attributes' own classes, read as if they stood here. Gives the methods."""
    read: list[ast.AST] = []
    for name, given in found.items():
        owner = None if name.isidentifier() else owner_of(name, scope)
        if owner is None or issubclass(type(owner), (type, dict)):
            continue
        outside = source_text.expression(name).value  # type: ignore[attr-defined]
        for method in inlined.methods_of(owner):
            if method.name in _MAKING or method.name == inside:
                continue
            read.append(method)
            if _last_part(name) not in source_text.stored_parts(method):
                continue
            for placed in beneath(inlined.seen_from(method, outside)):
                kind = dict(reversed(gives(placed.statement))).get(name)
                if kind is not None:
                    _add(given, placed, kind, scope, elsewhere=True)
    return read


def _last_part(name: str) -> str:
    return source_text.last_part(source_text.expression(name))


def owner_of(name: str, scope: Scope) -> object | None:
    """The object an attribute or item belongs to, if all that can change it is in the user's files: their own class, a
    namespace of settings, a dictionary."""
    node = source_text.expression(name)
    owner = scope.find(node.value) if isinstance(node, (ast.Attribute, ast.Subscript)) else UNKNOWN
    if owner is UNKNOWN:
        return None
    kind: type = owner if issubclass(type(owner), type) else type(owner)
    known = id(kind) in _PLAIN_OWNERS or class_name(kind) == "Namespace" or _all_users(kind)
    return owner if known else None


def _all_users(kind: type) -> bool:
    """All that can change it is in the user's files: the class, and those it comes from."""
    first, *others = mro_of(kind)
    return bool(file_of(first)) and all(
        base is object or bool(file_of(base)) or module_of(base) in _HARMLESS_BASES for base in others
    )
