"""Statements below a loop, each with the conditions on its way, and those that change what the loop tests: in it, in
methods of the tested objects' classes, elsewhere in the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from types import SimpleNamespace
from typing import Literal

from ...objects import UNKNOWN, class_name, file_of, ids, module_of, mro_of
from ...records.loops import Assignment
from . import parsed_source
from .conditions import condition, seen_from
from .expressions import Scope
from .parsed_source import FUNCTIONS, Function, expression, text

Guards = tuple[tuple[ast.expr | str, bool], ...]
"""Conditions, or a text where there is none, and the value that leads on."""
Given = Literal["constant", "add", "other"]
Assigned = dict[str, list[Assignment]]

LOOPS = (ast.While, ast.For, ast.AsyncFor)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
MOST_STATEMENTS = 5000
MOST_GUARDS = 24  # on the way to one statement; what is further in is not told apart
MOST_ASSIGNMENTS = 32  # of a name; one more stands for all others
_TRY = (ast.Try, *((ast.TryStar,) if hasattr(ast, "TryStar") else ()))
_WITH = (ast.With, ast.AsyncWith)
_HEADS = (*LOOPS, *_WITH, *_TRY, *SCOPES, ast.If, ast.Match)
_MAKING = ("__init__", "__new__", "__post_init__", "__setstate__")
_PLAIN_OWNERS = ids(dict, SimpleNamespace)
_HARMLESS_BASES = ("typing", "abc", "enum", "collections")


class Placed:
    """A statement, the conditions on the way to it, and whether another loop is in between."""

    __slots__ = ("guards", "nested", "statement")

    def __init__(self, statement: ast.stmt, guards: Guards, nested: bool) -> None:
        self.statement, self.guards, self.nested = statement, guards, nested


def beneath(body: list[ast.stmt]) -> Iterator[Placed]:
    """Every statement that runs in the same scope, in the order they are written."""
    waiting = [Placed(statement, (), False) for statement in reversed(body)]
    for _ in range(MOST_STATEMENTS):
        if not waiting:
            return
        here = waiting.pop()
        yield here
        for inner, added, nested in reversed(list(_bodies(here.statement))):
            full = len(here.guards) >= MOST_GUARDS
            guards = (*here.guards[:MOST_GUARDS], ("…", True)) if full else here.guards + added
            waiting.extend(Placed(statement, guards, here.nested or nested) for statement in reversed(inner))


def _bodies(statement: ast.stmt) -> Iterator[tuple[list[ast.stmt], Guards, bool]]:
    """Statements within a statement, with what this adds to their conditions."""
    if isinstance(statement, ast.If):
        yield statement.body, ((statement.test, True),), False
        yield statement.orelse, ((statement.test, False),), False
    elif isinstance(statement, LOOPS):
        tested = isinstance(statement, ast.While) and not isinstance(statement.test, ast.Constant)
        yield statement.body, ((statement.test, True),) if tested else (), True  # type: ignore[union-attr]
        yield statement.orelse, (), False
    elif isinstance(statement, _WITH):
        yield statement.body, (), False
    elif isinstance(statement, _TRY):
        for part in (statement.body, statement.orelse, statement.finalbody):
            yield part, (), False
        for handler in statement.handlers:
            yield handler.body, ((f"except {text(handler.type)}" if handler.type else "except", True),), False
    elif isinstance(statement, ast.Match):
        for case in statement.cases:
            yield case.body, ((f"case {text(case.pattern)}", True),), False


# --- what a statement gives a value --------------------------------------------------------------------------------


@lru_cache(maxsize=8192)
def _gives(statement: ast.stmt) -> dict[str, Given]:
    """Names that the statement gives a value, as written, and how."""
    return {text(target): kind for target, kind in reversed(list(_targets(statement)))}


def _targets(statement: ast.stmt) -> Iterator[tuple[ast.expr, Given]]:
    if isinstance(statement, ast.AugAssign):
        yield statement.target, "add" if isinstance(statement.op, (ast.Add, ast.Sub)) else "other"
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        for whole in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            for target, value in _pairs(whole, statement.value):
                yield target, _kind(target, value)
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield from ((target, "other") for target, _ in _pairs(statement.target, None))
    elif isinstance(statement, _WITH):
        kept = (item.optional_vars for item in statement.items if item.optional_vars)
        yield from ((target, "other") for whole in kept for target, _ in _pairs(whole, None))
    if not isinstance(statement, (*_HEADS, ast.AugAssign)):
        yield from ((node.target, "other") for node in ast.walk(statement) if isinstance(node, ast.NamedExpr))


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """`a, b = 0, 1` gives each name its own value; `a, b = f()` gives them one that is not known."""
    if isinstance(target, ast.Starred):
        yield from _pairs(target.value, None)
    elif isinstance(target, (ast.Tuple, ast.List)):
        known = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        values = value.elts if known else [None] * len(target.elts)  # type: ignore[union-attr]
        for inner, given in zip(target.elts, values, strict=True):
            yield from _pairs(inner, given)
    else:
        yield target, value


def _kind(target: ast.expr, value: ast.expr | None) -> Given:
    if isinstance(value, ast.Constant):
        return "constant"
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        return "add" if text(target) in (text(value.left), text(value.right)) else "other"
    return "other"


@lru_cache(maxsize=1024)
def _stored(function: Function) -> tuple[tuple[str, ast.stmt], ...]:
    """Statements of a function, each with the last part of what it stores into: attributes, items, and names that it
    shares with others (`global`, `nonlocal`)."""
    statements = [placed.statement for placed in beneath(function.body)]
    declared = [statement.names for statement in statements if isinstance(statement, (ast.Global, ast.Nonlocal))]
    shared = {name for names in declared for name in names}
    parts = [(_last_part(target), statement) for statement in statements for target, _ in _targets(statement)]
    return tuple((part, statement) for part, statement in parts if part in shared or part[:1] in (".", "["))


@lru_cache(maxsize=32)
def _stores(tree: ast.Module) -> dict[str, list[tuple[Function, ast.stmt]]]:
    """The same of all functions of a file, by that part."""
    by_part: dict[str, list[tuple[Function, ast.stmt]]] = {}
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    for function in functions:
        for part, statement in _stored(function):
            by_part.setdefault(part, []).append((function, statement))
    return by_part


def _last_part(node: ast.AST) -> str:
    """The attribute or the key, whatever its owner is called: `.step` of self.step, `['step']` of state['step']."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    if isinstance(node, ast.Subscript):
        return f"[{text(node.slice)}]" if isinstance(node.slice, ast.Constant) else "[]"
    return node.id if isinstance(node, ast.Name) else ""


# --- what changes the names that a loop tests ----------------------------------------------------------------------


def assignments(
    body: list[ast.stmt], function: ast.AST, tree: ast.Module, wanted: set[str], scope: Scope
) -> dict[str, list[Assignment]]:
    """By name: every statement that gives it a value while the loop runs, how, and under which conditions. Those in
    other functions of the file are marked `elsewhere`; of these, the ones that make an object do not count."""
    assigned: Assigned = {name: [] for name in sorted(wanted)}
    for placed in beneath(body):
        for name, kind in _gives(placed.statement).items():
            if name in assigned:
                _add(assigned[name], placed, kind, scope)
    read = _in_methods(assigned, getattr(function, "name", ""), scope)
    for name, given in assigned.items():
        for other, statement in _stores(tree).get(_last_part(expression(name)), ()):
            if not (_same(other, function) or other.name in _MAKING or other in read or len(given) > MOST_ASSIGNMENTS):
                line = parsed_source.first_line(statement)
                given.append(Assignment(line=statement.lineno, text=line, elsewhere=True, unread=True))
    return assigned


def _same(one: ast.AST, other: ast.AST) -> bool:
    """The same function; the file may have been parsed again meanwhile."""
    return isinstance(other, type(one)) and one.lineno == other.lineno  # type: ignore[attr-defined]


def _add(given: list[Assignment], placed: Placed, kind: Given, scope: Scope, elsewhere: bool = False) -> None:
    if len(given) > MOST_ASSIGNMENTS:
        return
    full = len(given) == MOST_ASSIGNMENTS
    given.append(
        Assignment(
            line=placed.statement.lineno,
            kind=kind,
            text=parsed_source.first_line(placed.statement),
            elsewhere=elsewhere or full,
            unread=full,
            guards=[] if full else [condition(guard, scope, value) for guard, value in placed.guards],
        )
    )


def _in_methods(assigned: Assigned, inside: str, scope: Scope) -> list[ast.AST]:
    """Statements in methods of the tested attributes' own classes, read as if they stood here. Gives the methods."""
    read: list[ast.AST] = []
    for name, given in assigned.items():
        owner = None if name.isidentifier() else owner_of(name, scope)
        if owner is None or issubclass(type(owner), (type, dict)):
            continue
        node = expression(name)
        for method in parsed_source.methods_of(owner):
            if method.name in _MAKING or method.name == inside:
                continue
            read.append(method)
            if all(part != _last_part(node) for part, _ in _stored(method)):
                continue
            for placed in beneath(seen_from(method, node.value)):  # type: ignore[attr-defined]
                kind = _gives(placed.statement).get(name)
                if kind is not None:
                    _add(given, placed, kind, scope, elsewhere=True)
    return read


def owner_of(name: str, scope: Scope) -> object | None:
    """The object an attribute or item belongs to, if all that can change it is in the user's files: their own class, a
    namespace of settings, a dictionary."""
    node = expression(name)
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
