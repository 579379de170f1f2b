"""Ways out of a loop and what guards them; what inside it changes the names that are tested."""

from __future__ import annotations

import ast
from types import SimpleNamespace

from ...objects import file_of
from . import inlined, source_text
from . import values as reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

    Loop = ast.While | ast.For | ast.AsyncFor
    Guards = tuple[tuple[ast.expr | str, bool], ...]

_LOOPS = (ast.While, ast.For, ast.AsyncFor)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MAKING = ("__init__", "__new__", "__post_init__", "__setstate__")
_LEAVING = ("sys.exit", "exit", "quit", "os._exit")
_known: dict[ast.stmt, list[tuple[str, str]]] = {}
_STOPS = ("StopIteration", "SystemExit", "KeyboardInterrupt", "StopAsyncIteration")


def ways_out(loop: Loop, frame: FrameType) -> list[dict[str, Any]]:
    """Each `break`, `return` and call that leaves the loop, with the conditions on its way and whether they hold."""
    found = []
    for statement, guards, _ in _statements(loop.body, (), inner=False):
        kind = _leaves(statement, guards)
        if kind:
            told = [_guard(guard, wanted, frame) for guard, wanted in guards if guard != "loop"]
            values = [each["holds"] for each in told]
            met = False if False in values else (None if None in values else True)
            found.append({"line": statement.lineno, "kind": kind, "guards": told, "met": met})
    return found[:16]


def _leaves(statement: ast.stmt, guards: Guards) -> str:
    if isinstance(statement, ast.Break):
        return "" if ("loop", True) in guards else "break"
    if isinstance(statement, ast.Return):
        return "return"
    if isinstance(statement, ast.Raise) and statement.exc is not None:
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return "raise" if source_text.text(raised).rpartition(".")[2] in _STOPS else ""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return "exit" if source_text.text(statement.value.func) in _LEAVING else ""
    return ""


def _guard(guard: ast.expr | str, wanted: bool, frame: FrameType) -> dict[str, Any]:
    if isinstance(guard, str):
        return {"text": guard, "kind": "other", "value": None, "wanted": wanted, "holds": None}
    told = reading.condition(guard, frame)
    holds = None if told["value"] is None else told["value"] is wanted
    return {**told, "wanted": wanted, "holds": holds}


def _statements(body: list[ast.stmt], guards: Guards, inner: bool) -> Iterator[tuple[ast.stmt, Guards, bool]]:
    """Every statement below a loop that runs in its own scope, with the conditions on its way."""
    for statement in body:
        yield statement, guards, inner
        if isinstance(statement, _SCOPES):
            continue
        if isinstance(statement, ast.If):
            yield from _statements(statement.body, (*guards, (statement.test, True)), inner)
            yield from _statements(statement.orelse, (*guards, (statement.test, False)), inner)
        elif isinstance(statement, _LOOPS):
            within: Guards = (*guards, ("loop", True))
            if isinstance(statement, ast.While) and not isinstance(statement.test, ast.Constant):
                within = (*within, (statement.test, True))
            yield from _statements(statement.body, within, True)
            yield from _statements(statement.orelse, guards, inner)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from _statements(statement.body, guards, inner)
        elif isinstance(statement, ast.Try):
            for part in (statement.body, statement.orelse, statement.finalbody):
                yield from _statements(part, guards, inner)
            for handler in statement.handlers:
                caught = f"except {source_text.text(handler.type)}" if handler.type else "except"
                yield from _statements(handler.body, (*guards, (caught, True)), inner)
        elif isinstance(statement, ast.Match):
            for case in statement.cases:
                yield from _statements(case.body, (*guards, (f"case {source_text.text(case.pattern)}", True)), inner)


def names_in(condition: dict[str, Any]) -> list[str]:
    return [*condition.get("names", ()), *(name for part in condition.get("parts", ()) for name in names_in(part))]


def assignments(
    loop: Loop, scope: ast.AST, tree: ast.Module, wanted: set[str], frame: FrameType
) -> dict[str, list[dict[str, Any]]]:
    """By name: every statement that gives it a value while the loop runs, how, and under which conditions. Those in
    other functions of the file are marked `elsewhere`; of these, the ones that make an object do not count."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in sorted(wanted)}
    for statement, guards, inner in _statements(loop.body, (), inner=False):
        for name, kind in _given(statement):
            if name in found:
                told = [_guard(guard, way, frame) for guard, way in guards if guard != "loop"]
                found[name].append({**_about(statement, kind, elsewhere=False), "guards": told, "inner": inner})
    read = _in_methods(found, frame)
    stored = source_text.stores(tree)
    for name in found:
        for function, statement in stored.get(source_text.last_part(source_text.expression(name)), ()):
            if function is not scope and function.name not in _MAKING and function not in read:
                about = _about(statement, "other", elsewhere=True)
                found[name].append({**about, "guards": [_guard("elsewhere", True, frame)], "inner": True})
    return found


def owner_of(name: str, frame: FrameType) -> object | None:
    """The object an attribute or item belongs to, if all that can change it is in the user's files: their own class, a
    namespace of settings, a dictionary."""
    node = source_text.expression(name)
    owner = reading.find(node.value, frame) if isinstance(node, (ast.Attribute, ast.Subscript)) else reading.Unknown()
    if isinstance(owner, reading.Unknown):
        return None
    kind = owner if isinstance(owner, type) else type(owner)
    return owner if kind in (dict, SimpleNamespace) or kind.__name__ == "Namespace" or _users(kind) else None


def _users(kind: type) -> bool:
    """All that can change it is in the user's files: the class, and those it comes from."""
    return bool(file_of(kind)) and all(
        base is object or _users(base) or base.__module__ in ("typing", "abc", "enum", "collections")
        for base in kind.__bases__
    )


def _in_methods(found: dict[str, list[dict[str, Any]]], frame: FrameType) -> list[ast.AST]:
    """Statements in methods of the tested attributes' own classes, read as if they stood here. Gives the methods."""
    read: list[ast.AST] = []
    for name in found:
        owner = None if name.isidentifier() else owner_of(name, frame)
        if owner is None or isinstance(owner, (type, dict)):
            continue
        outside = source_text.expression(name).value  # type: ignore[attr-defined]
        for method in inlined.methods_of(owner):
            if method.name in _MAKING or method.name == frame.f_code.co_name:
                continue
            read.append(method)
            for statement, guards, _ in _statements(inlined.seen_from(method, outside), (), inner=True):
                if any(given == name for given, _ in _given(statement)):
                    kind = next(kind for given, kind in _given(statement) if given == name)
                    told = [_guard(guard, way, frame) for guard, way in guards if guard != "loop"]
                    found[name].append({**_about(statement, kind, elsewhere=True), "guards": told, "inner": True})
    return read


def _about(statement: ast.stmt, kind: str, *, elsewhere: bool) -> dict[str, Any]:
    text = source_text.text(statement).partition("\n")[0][:120]
    return {"line": statement.lineno, "kind": kind, "text": text, "elsewhere": elsewhere}


def _given(statement: ast.stmt) -> list[tuple[str, str]]:
    """Names that the statement gives a value, and how; kept, for statements of parsed files are."""
    if statement not in _known:
        _known[statement] = list(_gives(statement))
    return _known[statement]


def _gives(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    if isinstance(statement, ast.AugAssign):
        yield source_text.text(statement.target), "add" if isinstance(statement.op, (ast.Add, ast.Sub)) else "other"
        return
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            for one, value in _pairs(target, statement.value):
                yield source_text.text(one), _kind(one, value)
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield from ((name, "other") for name in reading.names(statement.target))
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        yield from ((source_text.text(item.optional_vars), "other") for item in statement.items if item.optional_vars)
    if not isinstance(statement, (*_LOOPS, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match, *_SCOPES)):
        for node in ast.walk(statement):
            if isinstance(node, ast.NamedExpr):
                yield node.target.id, "other"


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """`a, b = 0, 1` gives each name its own value; `a, b = f()` gives them one that is not known."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
        return
    values = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else ()
    for place, one in enumerate(target.elts):
        yield from _pairs(one, values[place] if values else None)


def _kind(target: ast.expr, value: ast.expr | None) -> str:
    if isinstance(value, ast.Constant):
        return "constant"
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        return (
            "add"
            if source_text.text(target) in (source_text.text(value.left), source_text.text(value.right))
            else "other"
        )
    return "other"
