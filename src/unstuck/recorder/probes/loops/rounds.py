"""One round of a loop as it runs: its own statements, and where they stand those of the user's functions that it calls.

`for callback in self.callbacks: callback.on_epoch_end(self.state)` reads as the bodies of these methods one after the
other, with `self.callbacks[0]` for the first one's `self` and `self.state` for its `state`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType

from ...objects import UNKNOWN, file_of, ids, in_class, some_items
from .conditions import called, made_class, renamed, seen_from
from .expressions import Scope
from .parsed_source import LOOPS, SCOPES, Guards, Placed, bodies, expression, is_small, text

MOST_DEEP = 4  # functions one inside another
MOST_RAN = 2000  # statements of a round
MOST_LISTED = 32  # objects that a `for` calls one after the other
PERHAPS: Guards = (("…", True),)
"""On the way to what a `continue`, a `return` or a shortened `and` may pass by."""
_LISTED = ids(list, tuple)
_COPYING = frozenset((("copy", "copy"), ("copy", "deepcopy"), ("dataclasses", "replace"), ("builtins", "dict")))
_ONCE = (ast.BoolOp, ast.IfExp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Round:
    """Read when it is first asked for: most loops change what they test themselves."""

    def __init__(self, body: list[ast.stmt], scope: Scope) -> None:
        self._body, self._scope = body, scope
        self._ran: list[Placed] | None = None
        self._aliases: dict[str, ast.expr] = {}
        self._given: dict[str, ast.expr | None] = {}
        scope.known = self._known

    @property
    def ran(self) -> list[Placed]:
        """The statements in their order; those that may not run have conditions, or `nested` says that another loop
        is in between."""
        if self._ran is None:
            self._ran = []
            self._read(self._body, (), False, MOST_DEEP, (ast.Continue,))
        return self._ran

    def _known(self, name: str) -> ast.expr | None:
        """What the one statement that gives a called function's own name a value gives it."""
        return self._given.get(name) if self.ran else None

    def _read(
        self, body: list[ast.stmt], guards: Guards, nested: bool, deep: int, leaving: tuple[type[ast.stmt], ...]
    ) -> None:
        ran = self._ran if self._ran is not None else []
        for statement in body:
            if len(ran) >= MOST_RAN:
                return
            for call, sure in _calls(statement):
                self._call(call, guards if sure else guards + PERHAPS, nested, deep)
            ran.append(Placed(statement, guards, nested))
            self._note(statement)
            listed = self._listed(statement)
            for each in listed or ():
                self._read(each, guards, nested, deep, (*leaving, ast.Break, ast.Continue))
                guards += PERHAPS if _may_leave(statement.body, (ast.Break,)) else ()  # type: ignore[attr-defined]
            if listed is None:
                for inner, added, inside in bodies(statement):
                    known = self._is_there(added)
                    if known is not False:
                        within = tuple(kind for kind in leaving if kind is ast.Return) if inside else leaving
                        added = () if known else added
                        self._read(inner, guards + added, nested or inside, deep, within)
            if _may_leave([statement], leaving):
                guards += PERHAPS

    def _call(self, call: ast.Call, guards: Guards, nested: bool, deep: int) -> None:
        call = _by_name(call, self._aliases)
        found = called(call, self._scope) if deep else None
        if found is not None:
            self._read(seen_from(found[0], found[1], call, found[2]), guards, nested, deep - 1, (ast.Return,))

    def _note(self, statement: ast.stmt) -> None:
        """A name of a called function stands for what it was given."""
        name, value = "", None
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            name, value = text(statement.targets[0]), statement.value
            if " in " in name:
                self._aliases[name] = value
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and " in " in node.id and isinstance(node.ctx, ast.Store):
                self._given[node.id] = value if node.id == name and name not in self._given else None

    def _listed(self, statement: ast.stmt) -> list[list[ast.stmt]] | None:
        """The body of a `for` over objects and functions of the user's, once for each; None if it is none."""
        if not isinstance(statement, ast.For) or not isinstance(statement.target, ast.Name):
            return None
        through, keyed = statement.iter, False
        if isinstance(through, ast.Call) and isinstance(through.func, ast.Attribute) and through.func.attr == "values":
            through, keyed = through.func.value, True
        held = self._scope.find(through)
        if type(held) is not dict if keyed else id(type(held)) not in _LISTED:
            return None
        items = some_items(held)
        if not 0 < len(held) == len(items) <= MOST_LISTED or not all(_calls_users(each) for _, each in items):
            return None
        paths = [expression(f"{text(through)}[{key!r}]") for key, _ in items]
        return [renamed(statement.body, {statement.target.id: path}) for path in paths]

    def _is_there(self, added: Guards) -> bool | None:
        """`hasattr(callback, 'on_epoch_end')`: whether the condition holds; None for every other one."""
        if len(added) != 1 or isinstance(added[0][0], str):
            return None
        test, wanted = added[0]
        if not isinstance(test, ast.Call) or text(test.func) != "hasattr" or len(test.args) != 2:
            return None
        held, name = self._scope.find(test.args[0]), self._scope.find(test.args[1])
        if held is UNKNOWN or type(name) is not str or not file_of(type(held)):
            return None
        return (in_class(type(held), name) is not None) == wanted or None

    def same(self, stored: ast.expr, tested: ast.expr) -> bool | None:
        """Whether two expressions stand for the same object; None if that is not known."""
        for _ in range(MOST_DEEP):
            stored = self._aliases.get(text(stored), stored)
        if text(stored) == text(tested):
            return True
        one, other = self._scope.find(stored), self._scope.find(tested)
        if one is not UNKNOWN and other is not UNKNOWN:
            return one is other
        return False if self._is_copy(stored) else None

    def _is_copy(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Dict):
            return True
        if not isinstance(node, ast.Call) or made_class(node, self._scope) is not None:
            return isinstance(node, ast.Call)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
            return type(self._scope.find(node.func.value)) is dict
        function = self._scope.find(node.func)
        return type(function) is FunctionType and (function.__module__, function.__name__) in _COPYING

    def written(self, target: ast.expr) -> str:
        """What is stored into, in the names of the loop's function."""
        for _ in range(MOST_DEEP):
            target = self._aliases.get(text(target), target)
        return text(target)


def _calls_users(thing: object) -> bool:
    return type(thing) is FunctionType or bool(file_of(type(thing)))


def _calls(statement: ast.stmt) -> Iterator[tuple[ast.Call, bool]]:
    """Calls that the statement itself makes, inner ones first, and whether each is made whatever happens."""
    if isinstance(statement, SCOPES):
        return
    fields = [value for name, value in ast.iter_fields(statement) if name not in ("body", "orelse", "finalbody")]
    parts = [each for field in fields for each in (field if isinstance(field, list) else [field])]
    for part in parts:
        if isinstance(part, ast.AST) and not isinstance(part, (ast.ExceptHandler, ast.match_case)) and is_small(part):
            yield from _calls_in(part, True)


def _calls_in(node: ast.AST, sure: bool) -> Iterator[tuple[ast.Call, bool]]:
    if isinstance(node, ast.Lambda):
        return
    for inner in ast.iter_child_nodes(node):
        yield from _calls_in(inner, sure and not isinstance(node, _ONCE))
    if isinstance(node, ast.Call):
        yield node, sure


def _by_name(call: ast.Call, aliases: dict[str, ast.expr]) -> ast.Call:
    """`getattr(callback, 'on_end')(state)` as `callback.on_end(state)`, also where it got a name first."""
    function = aliases.get(text(call.func), call.func)
    asked = isinstance(function, ast.Call) and text(function.func) == "getattr" and len(function.args) > 1
    name = function.args[1] if asked else None  # type: ignore[attr-defined]
    if not isinstance(name, ast.Constant) or type(name.value) is not str:
        return call
    method = ast.Attribute(function.args[0], name.value, ast.Load())  # type: ignore[attr-defined]
    return ast.copy_location(ast.Call(ast.copy_location(method, call), call.args, call.keywords), call)


def _may_leave(body: list[ast.stmt], leaving: tuple[type[ast.stmt], ...]) -> bool:
    """A `continue`, `break` or `return` below may pass by what comes after."""
    waiting: list[tuple[ast.AST, tuple[type[ast.stmt], ...]]] = [(statement, leaving) for statement in body]
    while waiting:
        node, kinds = waiting.pop()
        if isinstance(node, kinds):
            return True
        if isinstance(node, LOOPS):
            kinds = tuple(kind for kind in kinds if kind is ast.Return)
        if isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)) and not isinstance(node, SCOPES) and kinds:
            waiting += [(inner, kinds) for inner in ast.iter_child_nodes(node)]
    return False
