"""Statements below a loop, each with the conditions on its way, and those that change what the loop tests: in it, in
methods of the tested objects' classes, elsewhere in the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from types import ModuleType, SimpleNamespace
from typing import Literal

from ...objects import UNKNOWN, class_name, entry, file_of, ids, module_of, mro_of
from ...records.loops import Assignment
from . import parsed_source
from .conditions import called, condition, seen_from
from .expressions import Scope
from .measured import measured_from
from .outcomes import nan_by, now, terms
from .parsed_source import FUNCTIONS, LOOPS, SCOPES, TRY, WITH, Function, Placed, beneath, expression, text
from .rounds import Round

Given = Literal["constant", "add", "scale", "append", "other"]
Assigned = dict[str, list[Assignment]]

MOST_ASSIGNMENTS = 32  # of a name; one more stands for all others
_HEADS = (*LOOPS, *WITH, *TRY, *SCOPES, ast.If, ast.Match)
MAKING = ("__init__", "__new__", "__post_init__", "__setstate__")
_PLAIN_OWNERS = ids(dict, SimpleNamespace)
_HOLDING = (list, tuple, type, ModuleType, type(UNKNOWN))
_HARMLESS_BASES = ("typing", "abc", "enum", "collections")


# --- what a statement gives a value --------------------------------------------------------------------------------


@lru_cache(maxsize=8192)
def gives(statement: ast.stmt) -> dict[str, Given]:
    """Names that the statement gives a value, as written, and how."""
    return {text(target): kind for target, kind in reversed(list(targets(statement)))}


def targets(statement: ast.stmt) -> Iterator[tuple[ast.expr, Given]]:
    if isinstance(statement, ast.AugAssign):
        yield statement.target, _by_operator(statement.op)
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        for whole in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            for target, value in pairs(whole, statement.value):
                yield target, _kind(target, value)
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield from ((target, "other") for target, _ in pairs(statement.target, None))
    elif isinstance(statement, WITH):
        kept = (item.optional_vars for item in statement.items if item.optional_vars)
        yield from ((target, "other") for whole in kept for target, _ in pairs(whole, None))
    if not isinstance(statement, (*_HEADS, ast.AugAssign)):
        yield from ((node.target, "other") for node in ast.walk(statement) if isinstance(node, ast.NamedExpr))


def changes(statement: ast.stmt, name: str) -> Given | None:
    """How a statement changes a name; what is appended to it counts too."""
    call = _appending(statement)
    added = call is not None and text(call.func.value) == name  # type: ignore[attr-defined]
    return "append" if added else gives(statement).get(name)


def _appending(statement: ast.stmt) -> ast.Call | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    appends = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append"
    return call if appends and len(call.args) == 1 else None  # type: ignore[union-attr, return-value]


def _value_for(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement gives the name, as an expression."""
    if isinstance(statement, ast.AugAssign):
        return ast.copy_location(ast.BinOp(statement.target, statement.op, statement.value), statement)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        wholes = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        given = [value for whole in wholes for target, value in pairs(whole, statement.value) if text(target) == name]
        return given[-1] if given else None
    call = _appending(statement)
    return None if call is None else call.args[0]


def pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """`a, b = 0, 1` gives each name its own value; `a, b = f()` gives them one that is not known."""
    if isinstance(target, ast.Starred):
        yield from pairs(target.value, None)
    elif isinstance(target, (ast.Tuple, ast.List)):
        known = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        values = value.elts if known else [None] * len(target.elts)  # type: ignore[union-attr]
        for inner, given in zip(target.elts, values, strict=True):
            yield from pairs(inner, given)
    else:
        yield target, value


def _kind(target: ast.expr, value: ast.expr | None) -> Given:
    if isinstance(value, ast.Constant):
        return "constant"
    if isinstance(value, ast.BinOp) and text(target) in (text(value.left), text(value.right)):
        return _by_operator(value.op)
    return "other"


def _by_operator(operator: ast.operator) -> Given:
    if isinstance(operator, (ast.Add, ast.Sub)):
        return "add"
    return "scale" if isinstance(operator, (ast.Mult, ast.Div, ast.FloorDiv)) else "other"


@lru_cache(maxsize=1024)
def _stored(function: Function) -> tuple[tuple[str, ast.stmt], ...]:
    """Statements of a function, each with the last part of what it stores into: attributes, items, and names that it
    shares with others (`global`, `nonlocal`)."""
    statements = [placed.statement for placed in beneath(function.body)]
    declared = [statement.names for statement in statements if isinstance(statement, (ast.Global, ast.Nonlocal))]
    shared = {name for names in declared for name in names}
    parts = [(last_part(target), statement) for statement in statements for target, _ in targets(statement)]
    return tuple((part, statement) for part, statement in parts if part in shared or part[:1] in (".", "["))


@lru_cache(maxsize=1024)
def _touched(function: Function) -> frozenset[str]:
    """The last parts of all that it stores into or appends to."""
    calls = [_appending(placed.statement) for placed in beneath(function.body)]
    appended = {last_part(call.func.value) for call in calls if call is not None}  # type: ignore[attr-defined]
    return frozenset(appended | {part for part, _ in _stored(function)})


@lru_cache(maxsize=32)
def stores(tree: ast.Module) -> dict[str, list[tuple[Function, ast.stmt]]]:
    """The same of all functions of a file, by that part."""
    by_part: dict[str, list[tuple[Function, ast.stmt]]] = {}
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    for function in functions:
        for part, statement in _stored(function):
            by_part.setdefault(part, []).append((function, statement))
    return by_part


def last_part(node: ast.AST) -> str:
    """The attribute or the key, whatever its owner is called: `.step` of self.step, `['step']` of state['step']."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    if isinstance(node, ast.Subscript):
        return f"[{text(node.slice)}]" if isinstance(node.slice, ast.Constant) else "[]"
    return node.id if isinstance(node, ast.Name) else ""


# --- what changes the names that a loop tests ----------------------------------------------------------------------


def assignments(
    body: list[ast.stmt], function: ast.AST, tree: ast.Module, wanted: set[str], scope: Scope, turn: Round
) -> dict[str, list[Assignment]]:
    """By name: every statement that gives it a value while the loop runs, how, and under which conditions. Those in
    other functions of the file are marked `elsewhere`; of these, the ones that make an object do not count."""
    assigned: Assigned = {name: [] for name in sorted(wanted)}
    for placed in beneath(body):
        for name in assigned:
            if (kind := changes(placed.statement, name)) is not None:
                _add(assigned[name], name, placed, kind, scope, turn=turn)
    read = _in_methods(assigned, body, getattr(function, "name", ""), scope)
    _in_closures(assigned, body, scope)
    for name, given in assigned.items():
        for other, statement in stores(tree).get(last_part(expression(name)), ()):
            if _same(other, function) or other.name in MAKING or other in read or len(given) > MOST_ASSIGNMENTS:
                continue
            if not _in_callback(turn, statement, name, given, scope):
                line = parsed_source.first_line(statement)
                given.append(Assignment(line=statement.lineno, text=line, elsewhere=True, unread=True))
    return assigned


def _in_callback(turn: Round, statement: ast.stmt, name: str, given: list[Assignment], scope: Scope) -> bool:
    """It is in a function that the round calls, and could be read as if it stood here."""
    here = [placed for placed in turn.ran if placed.statement.lineno == statement.lineno]
    seen = [(placed, kind) for placed in here if (kind := changes(placed.statement, name)) is not None]
    for placed, kind in seen:
        _add(given, name, placed, kind, scope, elsewhere=True)
    return bool(here) and len(seen) == len(here)


def _same(one: ast.AST, other: ast.AST) -> bool:
    """The same function; the file may have been parsed again meanwhile."""
    return isinstance(other, type(one)) and one.lineno == other.lineno  # type: ignore[attr-defined]


def _add(
    given: list[Assignment],
    name: str,
    placed: Placed,
    kind: Given,
    scope: Scope,
    elsewhere: bool = False,
    turn: Round | None = None,
) -> None:
    if len(given) > MOST_ASSIGNMENTS:
        return
    full = len(given) == MOST_ASSIGNMENTS
    value = None if full else _value_for(placed.statement, name)
    same, reads = _outcome(name, value, kind, scope)
    sums = None if value is None else terms(value, scope)
    anew, print_ = turn is not None and kind == "other" and not (placed.guards or placed.nested), ""
    if anew and value is not None and not same and parsed_source.calls(value):
        print_, reads = measured_from(placed.statement, value, scope, turn)  # type: ignore[arg-type]
    statement = Assignment(
        line=placed.statement.lineno,
        kind=kind,
        text=parsed_source.first_line(placed.statement),
        elsewhere=elsewhere or full,
        unread=full,
        guards=[] if full else [condition(guard, scope, value) for guard, value in placed.guards],
        same=same,
        reads=reads if sums is None or same else list(sums),
        measured_from=print_,
        sum=sums is not None,
        minus=[name for name, sign in (sums or {}).items() if sign < 0],
        clock=sums is not None and scope.reads_clock(value),
    )
    answer = condition(value, scope) if isinstance(value, ast.Call) and kind == "other" else None
    if answer is None or answer.kind != "call" or answer.parts[0].kind not in ("and", "or", "not", "compare"):
        given.append(statement)
        return
    for way in (True, False):  # `done = stopper(loss)` as the `if` that it stands for
        guards = [*statement.guards, replace(answer, wanted=way)]
        given.append(replace(statement, kind="constant", text=f"{name} = {way}", guards=guards))


def _outcome(name: str, value: ast.expr | None, kind: Given, scope: Scope) -> tuple[bool, list[str]]:
    """Whether a statement leaves the name what it is, or adds one more NaN to it; and by which names that is known."""
    if value is None:
        return False, []
    if kind == "append":
        reads = nan_by(value, scope)
        return bool(reads), reads
    before, (after, reads) = scope.find(expression(name)), now(value, scope)
    return after is not UNKNOWN and type(before) is type(after) and before == after, reads


def _in_methods(assigned: Assigned, body: list[ast.stmt], inside: str, scope: Scope) -> list[ast.AST]:
    """Statements in methods of the tested attributes' own classes, read as if they stood here. Gives the methods."""
    read: list[ast.AST] = []
    for name, given in assigned.items():
        owner = None if name.isidentifier() else owner_of(name, scope)
        if owner is None or issubclass(type(owner), (type, dict)):
            continue
        node = expression(name)
        for method in parsed_source.methods_of(owner):
            if method.name in MAKING or method.name == inside:
                continue
            read.append(method)
            if last_part(node) not in _touched(method):
                continue
            call = _only_call(body, node.value, method.name)  # type: ignore[attr-defined]
            for placed in beneath(seen_from(method, node.value, call)):  # type: ignore[attr-defined]
                kind = changes(placed.statement, name)
                if kind is not None:
                    _add(given, name, placed, kind, scope, elsewhere=True)
    return read


def _in_closures(assigned: Assigned, body: list[ast.stmt], scope: Scope) -> None:
    """Statements of a function that keeps the tested names with itself (`nonlocal`), and that the loop calls once."""
    for name, given in assigned.items():
        kept, _, function = name.partition(" in ")
        inside = (node for statement in body for node in ast.walk(statement)) if function else ()
        calls = [node for node in inside if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        found = [(call, of) for call in calls if (of := called(call, scope)) is not None and of[0].name == function]
        if len(found) != 1 or kept not in found[0][1][2]:
            continue
        call, (source, owner, shared) = found[0]
        for placed in beneath(seen_from(source, owner, call, shared)):
            kind = changes(placed.statement, name)
            if kind is not None:
                _add(given, name, placed, kind, scope, elsewhere=True)


def keeps_to_itself(name: str, tree: ast.Module) -> bool:
    """A name of a closure that one function alone changes."""
    kept, _, function = name.partition(" in ")
    return bool(function) and {other.name for other, _ in stores(tree).get(kept, ())} == {function}


def _only_call(body: list[ast.stmt], owner: ast.expr, method: str) -> ast.Call | None:
    """The call of an object's method in the loop, if there is one only: then its parameters are known."""
    written = text(owner) if method == "__call__" else f"{text(owner)}.{method}"
    inside = (node for statement in body for node in ast.walk(statement))
    calls = [node for node in inside if isinstance(node, ast.Call) and text(node.func) == written]
    return calls[0] if len(calls) == 1 else None


def owner_of(name: str, scope: Scope) -> object | None:
    """The object an attribute or item belongs to, if all that can change it is in the user's files: their own class, a
    namespace of settings, a dictionary."""
    node = expression(name)
    owner = scope.find(node.value) if isinstance(node, (ast.Attribute, ast.Subscript)) else UNKNOWN
    if owner is UNKNOWN:
        return None
    kind: type = owner if issubclass(type(owner), type) else type(owner)
    plain = id(kind) in _PLAIN_OWNERS and not _is_a_librarys(node.value, scope)  # type: ignore[attr-defined]
    return owner if plain or class_name(kind) == "Namespace" or _all_users(kind) else None


def _is_a_librarys(node: ast.expr, scope: Scope) -> bool:
    """A dictionary in an object of some library, which changes it by itself: `optimizer.param_groups[0]`, where
    schedulers write. Also where it has another name."""
    held = scope.find(node)
    if type(held) is dict and type(entry(held, "params")) is list:
        return True
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
        kind = type(scope.find(node))
        known = id(kind) in _PLAIN_OWNERS or kind in _HOLDING or class_name(kind) == "Namespace" or _all_users(kind)
        if not known:
            return True
    return False


def _all_users(kind: type) -> bool:
    """All that can change it is in the user's files: the class, and those it comes from."""
    first, *others = mro_of(kind)
    return bool(file_of(first)) and all(
        base is object or bool(file_of(base)) or module_of(base) in _HARMLESS_BASES for base in others
    )
