"""A flag that a loop waits for, and that no round leaves set: another statement clears it before each test, or what is
set is a copy's.

The statements of one round are taken in their order, round after round: going back from the test, the first one that
runs whatever happens and gives the flag a constant decides what the test finds.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import NamedTuple

from ... import user_code
from ...objects import module_dict
from ...records.loops import Assignment, Condition, Undone, WayOut
from . import parsed_source
from .conditions import condition
from .expressions import Scope, truth
from .parsed_source import Function, LoopNode, Placed, beneath, covers, expression, text
from .rounds import Round
from .statements import MAKING, last_part, pairs, stores, targets

MOST_FILES = 300  # of the user's that are loaded: with more, something may change the flag unseen


class _Store(NamedTuple):
    """A statement of a round that gives a value to an attribute of the flag's name."""

    at: int
    placed: Placed
    gives: bool | None  # a constant that counts as true or as false
    target: ast.expr
    same: bool | None  # it is the flag itself; None: not known

    @property
    def sure(self) -> bool:
        return self.same is True and not (self.placed.guards or self.placed.nested)


class _Written(NamedTuple):
    """A statement somewhere in the user's files that stores into something of the flag's name."""

    file: str
    function: str
    gives: bool | None


class Tested(NamedTuple):
    """A loop whose test, or whose ways out, wait for a flag."""

    loop: LoopNode
    file: str
    function: str  # that the loop is in
    scope: Scope
    turn: Round


def undone(of: Tested, test: Condition, exits: list[WayOut]) -> list[Undone]:
    tested = [(name, 0) for name in _flags(test)]
    tested += [(name, way.line) for way in exits for guard in way.guards for name in _flags(guard)]
    found = (_undone(of, name, line) for name, line in dict.fromkeys(tested))
    return [each for each in found if each is not None]


def _flags(whole: Condition) -> Iterator[str]:
    if whole.kind == "truth" and whole.names == [whole.text]:
        yield whole.text
    for part in whole.parts:
        yield from _flags(part)


def _undone(of: Tested, name: str, way: int) -> Undone | None:
    node = expression(name)
    written = _written(of, node)
    if not written:
        return None
    found = [store for at, placed in enumerate(of.turn.ran) for store in _stores(at, placed, node, of.turn)]
    at = _tested_at(of, name, way)
    if at is None or any(store.same is None for store in found):
        return None
    # Round after round: those before the test, the latest first, and then those after it, of the round before.
    own = sorted((store for store in found if store.same), key=lambda store: (store.at < at, store.at), reverse=True)
    clears = next((store for store in own if store.sure), None)
    holds = truth(of.scope.find(node)) if clears is None else clears.gives
    if holds is None or any(store.gives is not holds for store in own[: own.index(clears) if clears else None]):
        return None
    lines = {store.placed.statement.lineno for store in found}
    if any(each.gives is not holds and line not in lines for line, each in written.items()):
        return None  # something sets it that was not seen to run in a round
    sets = [store for store in found if store.gives is (not holds)]
    if not sets:
        return None
    by = _assignment(clears, of.scope) if clears is not None and sets[0].same else None
    told = _assignment(sets[0], of.scope)
    place = written.get((by or told).line)
    other = "" if by is not None else of.turn.written(sets[0].target.value)  # type: ignore[attr-defined]
    site = (place.file, (by or told).line, place.function) if place is not None else None
    return Undone(name=name, way=way, holds=holds, set=told, by=by, on=other, site=site)


def _stores(at: int, placed: Placed, node: ast.expr, turn: Round) -> Iterator[_Store]:
    """What a statement gives to the flag, or to what has its name in some object."""
    for target, value in _given(placed.statement):
        if last_part(target) == last_part(node):
            plain = isinstance(node, ast.Name)
            same = True if plain else turn.same(target.value, node.value)  # type: ignore[attr-defined]
            yield _Store(at, placed, value, target, same)


def _given(statement: ast.stmt) -> Iterator[tuple[ast.expr, bool | None]]:
    """What it stores into, and what the constant that it stores counts as."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        for whole in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            for target, value in pairs(whole, statement.value):
                yield target, bool(value.value) if isinstance(value, ast.Constant) else None
    else:
        yield from ((target, None) for target, _ in targets(statement))


def _tested_at(of: Tested, name: str, way: int) -> int | None:
    """Where in the round it is tested; None if that is in a loop within, or was not found."""
    ran = of.turn.ran
    if not way:
        return len(ran)
    own = {id(placed.statement) for placed in beneath(of.loop.body)}
    around = [
        at
        for at, placed in enumerate(ran)
        if id(placed.statement) in own and isinstance(placed.statement, ast.If) and covers(placed.statement, way)
    ]
    naming = [at for at in around if name in parsed_source.names(ran[at].statement.test)]  # type: ignore[attr-defined]
    at = max(naming or around, default=None)
    return None if at is None or ran[at].nested else at


def _assignment(store: _Store, scope: Scope) -> Assignment:
    return Assignment(
        line=store.placed.statement.lineno,
        kind="constant",
        text=parsed_source.first_line(store.placed.statement),
        guards=[condition(guard, scope, wanted) for guard, wanted in store.placed.guards],
    )


# --- everything that may change it -----------------------------------------------------------------------------------


def _written(of: Tested, node: ast.expr) -> dict[int, _Written]:
    """Every statement that can change the flag while the loop runs, by its line. Empty where that is not known."""
    part, here = last_part(node), user_code.absolute(of.file)
    written = {
        placed.statement.lineno: _Written(here, of.function, value)
        for placed in beneath(of.loop.body)
        for target, value in _given(placed.statement)
        if last_part(target) == part
    }
    files = user_files()
    word = node.attr if isinstance(node, ast.Attribute) else text(getattr(node, "slice", node)).strip("'")
    for path in (each for each in {*files, of.file} if parsed_source.mentions(each, word)):
        tree, own = parsed_source.tree_of(path), path == of.file
        if tree is None or len(files) > MOST_FILES or _is_rebound(of, tree, node, own):
            return {}
        for function, statement in stores(tree).get(part, ()):
            if function.name in MAKING or (own and _is_outside(of.loop, function, statement)):
                continue
            line, file = statement.lineno, user_code.absolute(path)
            if line in written and written[line].file != file:
                return {}  # the same line of two files
            values = [value for target, value in _given(statement) if last_part(target) == part]
            written[line] = _Written(file, function.name, values[0] if len(values) == 1 else None)
    return written


def user_files() -> set[str]:
    """Of all modules that are loaded."""
    modules = list(sys.modules.values())
    named = {(module_dict(module) or {}).get("__file__") for module in modules}
    return {path for path in named if type(path) is str and user_code.is_user_file(path) and path.endswith(".py")}


def _is_rebound(of: Tested, tree: ast.Module, node: ast.expr, here: bool) -> bool:
    """While the loop runs, the flag's owner may become another object."""
    owner = node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else None
    while isinstance(owner, (ast.Attribute, ast.Subscript)):
        made = stores(tree).get(last_part(owner), ())
        later = [each for each in made if each[0].name not in MAKING]
        if any(not (here and _is_outside(of.loop, *each)) for each in later):
            return True
        owner = owner.value
    inside = [target for placed in beneath(of.loop.body) for target, _ in targets(placed.statement)]
    return isinstance(owner, ast.Name) and any(text(target) == owner.id for target in inside)


def _is_outside(loop: LoopNode, function: Function, statement: ast.stmt) -> bool:
    """In the loop's own function, and not in the loop: it runs before it or after it."""
    return covers(function, loop.lineno) and not covers(loop, statement.lineno)
