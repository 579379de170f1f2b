"""The loops the training is in, and what their conditions say. Loaded on request only.

For each frame of the user's on the stack: the `while` and `for` around its line, their tests piece by piece, the ways
out of them and what guards these, and what inside them changes the names that are tested.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from ... import flight, journal, user_code
from ... import layout as at
from ...probe import Probe
from ...records.loops import DescribedLoop, LoopFrame, LoopSnapshot, Side
from . import inlined, iterated, loop_exits, source_text
from .assignments import assignments, owner_of
from .conditions import condition, names_in, shown
from .statements import LOOPS, SCOPES
from .values import scope_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    from ...records.loops import Assignment
    from .values import Scope

    LoopNode = ast.While | ast.For | ast.AsyncFor

FRAMES = 12
STACK = 5000
"""How far down the stack is gone."""
NAMES = 1000
DEEP = 3


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
    found: list[LoopFrame] = []
    here: FrameType | None = frame
    for _ in range(STACK):
        if here is None or len(found) == FRAMES:
            break
        code = here.f_code
        if here.f_lineno is not None and user_code.is_user_file(code.co_filename):
            function, around = _around(code, here.f_lineno)
            if around:
                found.append(_described(here, function, around))
        here = here.f_back
    return found


def _described(frame: FrameType, function: ast.AST, around: list[LoopNode]) -> LoopFrame:
    code, scope = frame.f_code, scope_of(frame)
    return LoopFrame(
        file=user_code.absolute(code.co_filename),
        line=frame.f_lineno,
        function=user_code.name_of(code),
        number=id(frame),
        generator=bool(code.co_flags & 0x220),  # an asynchronous one, too
        local=sorted(code.co_varnames)[:NAMES] if code.co_name != "<module>" else None,
        loops=[_loop(node, function, code.co_filename, scope) for node in around],
    )


def _loop(node: LoopNode, function: ast.AST, file: str, scope: Scope) -> DescribedLoop:
    exits = loop_exits.ways_out(node, scope)
    head = node.test if isinstance(node, ast.While) else node.target
    wanted = {*source_text.names(head), *(name for way in exits for guard in way.guards for name in names_in(guard))}
    assigned: dict[str, list[Assignment]] = {}
    tree = inlined.tree_of(file)
    for _ in range(DEEP if tree is not None else 0):  # what is tested, then what decides whether that is changed
        assigned.update(assignments(node.body, function, tree, wanted, scope))  # type: ignore[arg-type]
        guards = [guard for given in assigned.values() for each in given for guard in each.guards]
        wanted = {name for guard in guards for name in names_in(guard)} - assigned.keys()
    accounted = [name for name in assigned if not name.isidentifier() and owner_of(name, scope) is not None]
    header = node.body[0].lineno - 1 if node.body[0].lineno > node.lineno else node.lineno
    if isinstance(node, ast.While):
        return DescribedLoop(
            kind="while",
            text=f"while {source_text.text(node.test)}"[:200],
            first=node.lineno,
            header=header,
            test=condition(node.test, scope),
            exits=exits,
            assigned=assigned,
            accounted=accounted,
        )
    return DescribedLoop(
        kind="for",
        text=f"for {source_text.text(node.target)} in {source_text.text(node.iter)}"[:200],
        first=node.lineno,
        header=header,
        iterates=iterated.describe(node.iter, scope),
        targets=[Side(text=name, value=shown(_value(name, scope))) for name in source_text.names(node.target)],
        counts=iterated.counts(node, scope),
        exits=exits,
        assigned=assigned,
        accounted=accounted,
    )


def _value(name: str, scope: Scope) -> object:
    return scope.find(source_text.expression(name))


@lru_cache(maxsize=512)
def _around(code: CodeType, line: int) -> tuple[ast.AST, list[LoopNode]]:
    """The function that runs, and its loops around a line, outermost first."""
    tree = inlined.tree_of(code.co_filename)
    function: ast.AST | None = tree if code.co_name == "<module>" else inlined.definition(code)
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
