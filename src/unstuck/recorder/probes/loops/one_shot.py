"""Iterators that can be gone through once, and loops further out that go through the same one in each round.

`windows = batches(data)` before `for epoch in …: for x, y in windows: …`: the first round uses it up, and the others
get nothing. Nothing is drawn from the iterator: its type says that it does not start over, and the source that nothing
in the outer loop makes a new one.
"""

from __future__ import annotations

import ast
import csv
import io
import itertools
from collections.abc import Iterator
from functools import reduce
from types import GeneratorType
from typing import Any, NamedTuple

from ...objects import UNKNOWN, class_name, file_of, ids, in_class, mro_of, some_of
from ...records import Site
from ...records.loops import Held
from . import parsed_source
from .conditions import MOST_CALLS, called, in_callers_names
from .endless_stream import is_left
from .expressions import Scope
from .parsed_source import TRY, Function, beneath, covers, own_parts, text
from .rounds import Round
from .statements import MAKING, assignments, gives, stores

MOST_NODES = 4000  # of a loop's body that are looked at
MOST_HOLDERS = 3  # loops around that hold the same iterator
MOST_NAMES = 500  # of a function, that may stand for an object
THROUGH = frozenset(("enumerate", "tqdm", "track", "iter", "progress_bar"))  # they go through what they are given
_SPENT = ids(  # once at the end they stay there
    *(GeneratorType, zip, map, filter, enumerate, reversed, io.TextIOWrapper, io.BufferedReader),
    *map(type, map(iter, ([], (), {}, set(), "", b"", range(0), range(1 << 70), {}.items(), {}.values()))),
    *(type(reversed([])), type(iter(int, 0)), type(csv.reader(()))),
    *(itertools.chain, itertools.islice, itertools.starmap, itertools.takewhile, itertools.dropwhile),
    *(itertools.zip_longest, itertools.accumulate, itertools.compress, itertools.filterfalse, itertools.pairwise),
    *(itertools.product, itertools.permutations, itertools.combinations, type(itertools.tee(())[0])),
    *((itertools.batched,) if hasattr(itertools, "batched") else ()),
)
For = ast.For | ast.AsyncFor
Loop = ast.While | For


class Place(NamedTuple):
    """A function of the user's on the stack, and the loops around its line, outermost first."""

    number: int
    file: str
    line: int
    name: str
    function: ast.AST
    around: list[Any]
    scope: Scope
    generator: bool


def held_by(places: list[Place], here: int, which: int) -> list[Held]:
    """Loops around a `for` that hold the iterator which it goes through, and do nothing to renew it; nearest first.
    `here` and `which`: the place of the `for`, and its place there."""
    inner = places[here].around[which]
    if not isinstance(inner, ast.For) or places[here].generator:
        return []
    for path, thing in _sources(inner.iter, places[here].scope):
        held: list[Held] = []
        for outer_at, outer in _further_out(places, here, which):
            name = _name_in(outer, places[outer_at], path, thing, inner if outer_at == here else None)
            if name is None or not _goes_in(places, here, inner, outer_at, outer) or len(held) == MOST_HOLDERS:
                break
            if type(thing) is not GeneratorType and _may_rewind(path, places[here : outer_at + 1]):
                break
            at = places[outer_at]
            made = _made(name, outer, at)
            held.append(Held(name=name, type=class_name(type(thing)), frame=at.number, line=outer.lineno, made=made))
        if held:
            return held
    return []


def _further_out(places: list[Place], here: int, which: int) -> Iterator[tuple[int, Loop]]:
    for outer in reversed(places[here].around[:which]):
        yield here, outer
    for number in range(here + 1, len(places)):
        if places[number].generator:
            return
        for outer in reversed(places[number].around):
            yield number, outer


def _may_rewind(path: ast.expr, places: list[Place]) -> bool:
    """What it reads may be a file that is set back to its beginning: the script or a class of an owner has the word."""
    owners = (places[0].scope.find(each) for each in ast.walk(path) if isinstance(each, (ast.Name, ast.Attribute)))
    files = {file_of(type(owner)) for owner in owners} | {place.file for place in places}
    return any(file and parsed_source.mentions(file, "seek") for file in files)


# --- what a `for` goes through ---------------------------------------------------------------------------------------


def _sources(node: ast.expr, scope: Scope, calls: int = MOST_CALLS) -> Iterator[tuple[ast.expr, object]]:
    """Names that stand for an iterator which the loop uses up, each with the iterator."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        thing = scope.find(node)
        if thing is UNKNOWN:
            return
        if _is_spent(thing):
            yield node, thing
            return
        node = ast.Call(_attribute(node, "__iter__"), [], [])
    if isinstance(node, ast.Call) and calls:
        function = text(node.func).rpartition(".")[2]
        if function in THROUGH and node.args and not (function == "iter" and len(node.args) > 1):
            yield from _sources(node.args[0], scope, calls - 1)
        elif function == "zip":
            for part in node.args:
                yield from _sources(part, scope, calls - 1)
        elif (found := called(node, scope)) is not None and (through := _gone_through(found[0])) is not None:
            yield from _sources(in_callers_names(through, node, found), scope, calls - 1)


def _is_spent(thing: object) -> bool:
    """Once it has come to its end, it gives nothing more."""
    kind = type(thing)
    return id(kind) in _SPENT or _stays_at_its_end(kind)


def _stays_at_its_end(kind: type) -> bool:
    """A class of the user's whose `__iter__` is the object itself, and whose `__next__` does nothing but end."""
    if not file_of(kind) or any(base is not object and not file_of(base) for base in mro_of(kind)):
        return False
    begin, give = (parsed_source.source_of((in_class(kind, name) or (0, 0))[1]) for name in ("__iter__", "__next__"))
    if begin is None or give is None:
        return False
    plain = [each for each in begin.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    itself = begin.args.args[0].arg if begin.args.args else ""
    if len(plain) != 1 or not isinstance(plain[0], ast.Return) or text(plain[0]) != f"return {itself}":
        return False
    placed = list(beneath(give.body))
    ends = [
        each for each in placed if isinstance(each.statement, ast.Raise) and "StopIteration" in text(each.statement)
    ]
    beside = [each for end in ends for each in placed if each.guards == end.guards and each is not end]
    return (
        bool(ends)
        and all(end.guards for end in ends)
        and not any(gives(each.statement) or isinstance(each.statement, ast.Expr) for each in beside)
    )


def _gone_through(function: Function) -> ast.expr | None:
    """The parameter that a generator goes through to the end; at most a remainder comes after that."""
    if not parsed_source.is_generator(function):
        return None
    nodes = list(parsed_source.own_nodes(function))
    loops = [statement for statement in function.body if isinstance(statement, (ast.For, ast.While))]
    if len(loops) != 1 or not isinstance(loops[0], ast.For) or is_left(loops[0]):
        return None
    loop = loops[0]
    within = set(map(id, ast.walk(loop)))
    outside = [
        placed
        for placed in beneath(function.body)
        if id(placed.statement) not in within and not placed.guards and placed.statement is not loop
    ]
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for placed in outside for node in own_parts(placed.statement)):
        return None
    through: ast.expr = loop.iter
    while isinstance(through, ast.Call) and text(through.func) in THROUGH and len(through.args) == 1:
        through = through.args[0]
    assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    named = isinstance(through, ast.Name) and through.id not in assigned
    return through if named or isinstance(through, ast.Attribute) else None


# --- who holds it ----------------------------------------------------------------------------------------------------


def _name_in(outer: Loop, at: Place, path: ast.expr, thing: object, inner: For | None) -> str | None:
    """The name that the loop further out has for the iterator, where it does nothing with it but go through it, or
    hand it on once, and nothing that can be read gives the name something else."""
    nodes = [node for statement in outer.body for node in ast.walk(statement)]
    tree = parsed_source.tree_of(at.file)
    if len(nodes) > MOST_NODES or tree is None:
        return None
    if inner is not None:
        name: str | None = text(path)
        expected = {id(node) for node in ast.walk(inner.iter)}
    else:
        name = _name_of(thing, nodes, path, at.scope)
        expected = set()
    if name is None:
        return None
    named = [(node, text(node)) for node in nodes if isinstance(node, (ast.Name, ast.Attribute))]
    owners = {name.rsplit(".", dots)[0] for dots in range(name.count(".") + 1)}  # and itself
    if any(isinstance(node.ctx, (ast.Store, ast.Del)) and written in owners for node, written in named):
        return None
    if sum(id(node) not in expected and written == name for node, written in named) > (inner is None):
        return None
    if isinstance(outer, (ast.For, ast.AsyncFor)) and owners & set(map(text, ast.walk(outer.target))):
        return None
    turn = Round(outer.body, at.scope)
    return None if any(assignments(outer.body, at.function, tree, owners, at.scope, turn).values()) else name


def _name_of(thing: object, nodes: list[ast.AST], path: ast.expr, scope: Scope) -> str | None:
    """What the caller calls it: a name in the loop; a way to it from an object that it has; a name that both share."""
    written = [node for node in nodes if isinstance(node, (ast.Name, ast.Attribute)) and scope.find(node) is thing]
    if written:
        return text(written[0])
    if isinstance(path, ast.Name):
        return path.id if scope.find(path) is thing else None
    if not isinstance(path, ast.Attribute):
        return None
    owners = [each.attr for each in ast.walk(path) if isinstance(each, ast.Attribute)]  # the last one first
    ways = [owners[:count][::-1] for count in range(1, len(owners) + 1)]
    for name, value in some_of(scope.spaces[0].items(), MOST_NAMES):
        if type(name) is str and name.isidentifier() and id(type(value)) not in _SPENT:
            root: ast.expr = ast.Name(name, ast.Load())
            for known in (reduce(_attribute, way, root) for way in ways):
                if scope.find(known) is thing:
                    return text(known)
    return None


def _attribute(owner: ast.expr, name: str) -> ast.expr:
    return ast.Attribute(owner, name, ast.Load())


def _goes_in(places: list[Place], here: int, inner: For, outer_at: int, outer: Loop) -> bool:
    """Each round of the loop further out comes to the inner one: no condition is on the way, and no error that is
    caught on the way can leave the inner loop early."""
    if outer_at == here:
        return _is_plain(outer.body, inner)
    body = places[here].function.body  # type: ignore[attr-defined]
    line = places[outer_at].line
    at_line = [each for each in beneath(outer.body) if covers(each.statement, line)]
    return _is_plain(body, inner) and bool(at_line) and _is_plain(outer.body, at_line[-1].statement)


def _is_plain(body: list[ast.stmt], statement: ast.stmt) -> bool:
    placed = list(beneath(body))
    found = next((each for each in placed if each.statement is statement), None)
    tried = [each.statement for each in placed if isinstance(each.statement, TRY) and each.statement.handlers]
    caught = any(inside is statement for each in tried for inside in ast.walk(each))
    skips = any(isinstance(each.statement, ast.Continue) and not each.nested for each in placed)
    return found is not None and not found.guards and not caught and not skips


def _made(name: str, outer: Loop, at: Place) -> Site | None:
    """The line that made the iterator; None where it came as an argument."""
    body = at.function.body  # type: ignore[attr-defined]
    before = [each.statement for each in beneath(body) if each.statement.lineno < outer.lineno]
    lines = [statement.lineno for statement in before if name in gives(statement)]
    if lines:
        return at.file, lines[-1], at.name
    tree = parsed_source.tree_of(at.file)
    part = "." + name.rpartition(".")[2]
    making = [(f, s) for f, s in stores(tree).get(part, ()) if f.name in MAKING] if tree and "." in name else []
    return (at.file, making[0][1].lineno, making[0][0].name) if len(making) == 1 else None
