"""The loops the training is in, and what their conditions say. Loaded on request only.

For each frame of the user's on the stack: the `while` and `for` around its line, their tests piece by piece, the ways
out of them and what guards these, and what inside them changes the names that are tested.
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any, Literal

from ... import flight, journal, lengths, user_code
from ... import layout as at
from ...objects import UNKNOWN, class_name, ids, in_class
from ...probe import Probe
from ...records.loops import Assignment, Counter, DescribedLoop, Iterated, LoopFrame, LoopSnapshot, Side, WayOut
from . import parsed_source
from .conditions import condition, names_in, shown
from .expressions import Scope, is_numpys, scope_of
from .parsed_source import LOOPS, SCOPES, Placed, beneath, expression, text
from .statements import assignments, owner_of

LoopNode = ast.While | ast.For | ast.AsyncFor

MOST_FRAMES = 12  # that are described
MOST_NAMES = 1000  # of a function
MOST_EXITS = 16  # of a loop
MOST_ZIPPED = 16  # that a `zip` goes through
ROUNDS = 3  # what is tested, what decides whether that is changed, and once more
_LEAVING = ("sys.exit", "exit", "quit", "os._exit")
_STOPS = ("StopIteration", "SystemExit", "KeyboardInterrupt", "StopAsyncIteration")
_THROUGH = frozenset(("enumerate", "tqdm", "track", "iter", "progress_bar", "prefetch", "auto"))
_ENDING = frozenset(("range", "islice", "trange", "list", "tuple", "sorted", "reversed", "takewhile", "items", "keys"))
_ENDLESS = frozenset(("count", "cycle"))
_BOUNDED = ids(list, tuple, dict, set, frozenset, str, bytes, range)
_ROUND = ids(itertools.count, itertools.cycle)
_WRITTEN_OUT = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.Constant)


class Loops(Probe):
    """Describes the loops around the moment at which it is asked."""

    name = "loops"

    def asked_loops(self, frame: FrameType) -> None:
        try:
            frames = _frames(frame)
            if frames:
                passes = flight.words[at.W_LOADERS]
                journal.tell(LoopSnapshot(step=flight.steps(), passes=passes, frames=frames))
        except RecursionError:  # the user's stack is nearly full: perhaps next time
            pass


def _frames(frame: FrameType) -> list[LoopFrame]:
    described: list[LoopFrame] = []
    for caller in user_code.frames(frame):
        code = caller.f_code
        if caller.f_lineno is not None and user_code.is_user_file(code.co_filename):
            function, around = _around(code, caller.f_lineno)
            if around:
                described.append(_described(caller, function, around))
        if len(described) == MOST_FRAMES:
            break
    return described


def _described(frame: FrameType, function: ast.AST, around: list[LoopNode]) -> LoopFrame:
    code, scope = frame.f_code, scope_of(frame)
    generator = bool(code.co_flags & 0x220)  # an asynchronous one, too
    return LoopFrame(
        file=user_code.absolute(code.co_filename),
        line=frame.f_lineno,
        function=user_code.name_of(code),
        number=id(frame),
        generator=generator,
        called_by=id(frame.f_back) if generator and frame.f_back is not None else 0,
        local=sorted(code.co_varnames)[:MOST_NAMES] if code.co_name != "<module>" else None,
        loops=[_loop(node, function, code.co_filename, scope) for node in around],
    )


@lru_cache(maxsize=512)
def _around(code: CodeType, line: int) -> tuple[ast.AST, list[LoopNode]]:
    """The function that runs, and its loops around a line, outermost first."""
    tree = parsed_source.tree_of(code.co_filename)
    function: ast.AST | None = tree if code.co_name == "<module>" else parsed_source.definition(code)
    if tree is None or function is None:
        return ast.Module([], []), []
    loops: list[LoopNode] = []
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        first = getattr(node, "lineno", line)
        if isinstance(node, (*SCOPES, ast.expr)) or not first <= line <= (getattr(node, "end_lineno", None) or line):
            continue
        if isinstance(node, LOOPS) and line <= (node.body[-1].end_lineno or line):
            loops.append(node)
        waiting.extend(ast.iter_child_nodes(node))
    return function, sorted(loops, key=lambda loop: (loop.lineno, loop.col_offset))


def _loop(node: LoopNode, function: ast.AST, file: str, scope: Scope) -> DescribedLoop:
    exits = _exits(node, scope)
    head = node.test if isinstance(node, ast.While) else node.target
    wanted = {*parsed_source.names(head), *(name for way in exits for guard in way.guards for name in names_in(guard))}
    assigned: dict[str, list[Assignment]] = {}
    tree = parsed_source.tree_of(file)
    for _ in range(ROUNDS if tree is not None else 0):
        assigned.update(assignments(node.body, function, tree, wanted, scope))  # type: ignore[arg-type]
        guards = [guard for given in assigned.values() for assignment in given for guard in assignment.guards]
        wanted = {name for guard in guards for name in names_in(guard)} - assigned.keys()
    loop = DescribedLoop(
        first=node.lineno,
        header=node.body[0].lineno - 1 if node.body[0].lineno > node.lineno else node.lineno,
        exits=exits,
        assigned=assigned,
        accounted=[name for name in assigned if not name.isidentifier() and owner_of(name, scope) is not None],
    )
    if isinstance(node, ast.While):
        return replace(loop, kind="while", text=f"while {text(node.test)}"[:200], test=condition(node.test, scope))
    names = parsed_source.names(node.target)
    return replace(
        loop,
        kind="for",
        text=f"for {text(node.target)} in {text(node.iter)}"[:200],
        iterates=_iterated(node.iter, scope),
        targets=[Side(text=name, value=shown(scope.find(expression(name)))) for name in names],
        counts=_counter(node, scope),
    )


# --- ways out ------------------------------------------------------------------------------------------------------


def _exits(loop: LoopNode, scope: Scope) -> list[WayOut]:
    """Each `break`, `return` and call that leaves the loop, with the conditions on its way."""
    leaving = ((placed, kind) for placed in beneath(loop.body) if (kind := _leaves(placed)) is not None)
    return [
        WayOut(
            line=placed.statement.lineno,
            kind=kind,
            guards=[condition(guard, scope, wanted) for guard, wanted in placed.guards],
        )
        for placed, kind in itertools.islice(leaving, MOST_EXITS)
    ]


def _leaves(placed: Placed) -> Literal["break", "return", "raise", "exit"] | None:
    statement = placed.statement
    if isinstance(statement, ast.Break):
        return None if placed.nested else "break"
    if isinstance(statement, ast.Return):
        return "return"
    if isinstance(statement, ast.Raise) and statement.exc is not None:
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return "raise" if text(raised).rpartition(".")[2] in _STOPS else None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return "exit" if text(statement.value.func) in _LEAVING else None
    return None


# --- what a `for` goes through: something that ends by itself, something endless, or something of the user's ---------


def _iterated(node: ast.expr, scope: Scope) -> Iterated:
    written = text(node)[:120]
    if isinstance(node, ast.Call):
        name = text(node.func).rpartition(".")[2]
        if name in _THROUGH and node.args and parsed_source.is_small(node):
            return _iterated(node.args[0], scope)
        if name == "zip" and node.args:
            return _shortest([_iterated(part, scope) for part in node.args[:MOST_ZIPPED]], written)
        return Iterated(text=written, ends=_call_ends(name, node.args))
    if isinstance(node, _WRITTEN_OUT):
        return Iterated(text=written, ends=True)
    return _iterated_thing(scope.find(node), written)


def _shortest(zipped: list[Iterated], written: str) -> Iterated:
    """What `zip` ends with: one that ends by itself; where all go by an index, the shortest."""
    if any(part.ends for part in zipped):
        return Iterated(text=written, ends=True)
    if all(part.by_index and part.length is not None for part in zipped):
        return min(zipped, key=lambda part: part.length or 0)
    return Iterated(text=written)


def _call_ends(name: str, arguments: list[ast.expr]) -> bool | None:
    if name in _ENDING:
        return True
    return False if name in _ENDLESS or (name == "repeat" and len(arguments) == 1) else None


def _iterated_thing(thing: Any, written: str) -> Iterated:
    if thing is UNKNOWN:
        return Iterated(text=written)
    kind = type(thing)
    if id(kind) in _BOUNDED or is_numpys(thing):
        return Iterated(text=written, ends=True, type=class_name(kind))
    if id(kind) in _ROUND:
        return Iterated(text=written, ends=False, type=class_name(kind))
    item = in_class(kind, "__getitem__") if in_class(kind, "__iter__") is None else None
    if item is None:
        return Iterated(text=written, type=class_name(kind))
    site = user_code.code_site(item[1]) if type(item[1]) is FunctionType else None
    return Iterated(text=written, type=class_name(kind), by_index=True, length=lengths.length(thing), item_site=site)


def _counter(node: ast.For | ast.AsyncFor, scope: Scope) -> Counter | None:
    """The name that counts the rounds of a `for … in enumerate(…)` or `range(…)`, and the most it can come to."""
    call = node.iter
    if not isinstance(call, ast.Call) or not call.args:
        return None
    function, target = text(call.func).rpartition(".")[2], node.target
    if function in ("range", "trange") and isinstance(target, ast.Name) and len(call.args) <= 2:
        stop = scope.find(call.args[-1])
        return Counter(name=target.id, most=stop - 1) if type(stop) is int else None
    counted = function == "enumerate" and len(call.args) == 1 and isinstance(target, ast.Tuple)
    if not counted or not isinstance(target.elts[0], ast.Name):  # type: ignore[attr-defined]
        return None
    thing = scope.find(call.args[0])
    rounds = None if thing is UNKNOWN else lengths.length(thing)
    return None if rounds is None else Counter(name=text(target.elts[0]), most=rounds - 1)  # type: ignore[attr-defined]
