"""The loops the training is in, and what their conditions say. Loaded on request only.

For each frame of the user's on the stack: the `while` and `for` around its line, their tests piece by piece, the ways
out of them and what guards these, and what inside them changes the names that are tested.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import sys
from dataclasses import replace
from types import FrameType
from typing import Literal

from ... import flight, journal, lengths, user_code
from ... import layout as at
from ...objects import UNKNOWN
from ...probe import Probe
from ...records.loops import (
    Assignment,
    Condition,
    Counter,
    DescribedLoop,
    Feeding,
    LoopFrame,
    LoopSnapshot,
    Side,
    WayOut,
)
from . import parents_loops, parsed_source
from .conditions import condition, names_in, shown
from .expressions import Scope, scope_of
from .iterated import iterated
from .one_shot import Place, held_by
from .own_passes import OwnPasses
from .parsed_source import TRY, LoopNode, Placed, around_line, beneath, expression, text
from .rounds import Round
from .statements import assignments, keeps_to_itself, owner_of
from .stays_true import stays_true
from .undone import Tested, undone

When = Literal["asked", "early", "died"]

EARLY_STEP = 2  # at which the loops around a training without a loader are described: its first pass may be short
MOST_FRAMES = 12  # that are described
MOST_NAMES = 1000  # of a function
MOST_EXITS = 16  # of a loop
ENDLESS = 1 << 62  # rounds of a `while`
ROUNDS = 3  # what is tested, what decides whether that is changed, and once more
_LEAVING = ("sys.exit", "exit", "quit", "os._exit")
_STOPS = ("StopIteration", "SystemExit", "KeyboardInterrupt", "StopAsyncIteration")
_BUILT_IN = frozenset(vars(builtins))


class Loops(Probe):
    """Describes the loops around the moment at which it is asked."""

    name = "loops"

    def forget(self) -> None:
        self._holding = False  # a loop holds an iterator that its first round uses up
        self._passes = OwnPasses()
        self._fed: list[tuple[str, int]] = []

    def asked_loops(self, frame: FrameType) -> None:
        if not flight.words[at.W_LOADERS]:
            self._tell_feeding(frame)
        self._describe([(each, each.f_lineno) for each in user_code.frames(frame)], "asked")

    def stepped_without_loader(self, frame: FrameType, step: int) -> None:
        if step == EARLY_STEP:
            self._tell_feeding(frame)
            stack = list(user_code.frames(frame))
            self._passes.begin(stack, self._describe([(each, each.f_lineno) for each in stack], "early"))
        else:
            self._passes.look(frame)

    def last(self) -> None:
        self._passes.last()

    def _tell_feeding(self, frame: FrameType) -> None:
        from . import batch_maker

        if "torch" not in sys.modules:
            return
        try:
            lines = batch_maker.feeding(frame)
        except RecursionError:  # as below
            return
        places = [(each.file, each.first) for each in lines]
        if lines and places != self._fed:
            self._fed = places
            journal.write(Feeding(step=flight.steps(), lines=lines))

    def process_failed(self, error: BaseException) -> None:
        """In which round of such a loop it was."""
        traced: list[tuple[FrameType, int | None]] = []
        step = error.__traceback__ if self._holding else None
        while step is not None and len(traced) < user_code.MOST_FRAMES:
            traced.append((step.tb_frame, step.tb_lineno))
            step = step.tb_next
        self._describe(traced[::-1], "died")

    def _describe(self, stack: list[tuple[FrameType, int | None]], when: When) -> list[LoopFrame]:
        frames: list[LoopFrame] = []
        try:
            stack, behind = parents_loops.split(stack)
            frames, copied = _frames(stack), parents_loops.copied(behind)
            if frames or copied:
                held = (loop.iterates.held for frame in frames for loop in frame.loops)
                self._holding = self._holding or any(held)
                passes, epochs = flight.words[at.W_LOADERS], flight.words[at.W_EPOCH]
                made, backwards = flight.steps(), flight.state[flight.BACKWARDS]
                told = LoopSnapshot(
                    step=made,
                    when=when,
                    passes=passes,
                    epochs=epochs,
                    backwards=backwards,
                    frames=frames,
                    copied=copied,
                )
                journal.tell(told)
        except RecursionError:  # the user's stack is nearly full: perhaps next time
            pass
        return frames


def _frames(stack: list[tuple[FrameType, int | None]]) -> list[LoopFrame]:
    """`stack`: each frame with its line, the innermost first."""
    found: list[tuple[FrameType, Place]] = []
    for frame, line in stack:
        code = frame.f_code
        if line is not None and user_code.is_user_file(code.co_filename):
            function, around = around_line(code, line)
            if around:
                generator = bool(code.co_flags & 0x220)  # an asynchronous one, too
                name, scope, number = user_code.name_of(code), scope_of(frame), id(frame)
                place = Place(number, code.co_filename, line, name, function, around, scope, generator)
                found.append((frame, place))
        if len(found) == MOST_FRAMES:
            break
    places = [place for _, place in found]
    return [_described(frame, places, number) for number, (frame, _) in enumerate(found)]


def _described(frame: FrameType, places: list[Place], number: int) -> LoopFrame:
    code, place = frame.f_code, places[number]
    return LoopFrame(
        file=user_code.absolute(code.co_filename),
        line=place.line,
        function=place.name,
        number=place.number,
        generator=place.generator,
        called_by=id(frame.f_back) if place.generator and frame.f_back is not None else 0,
        local=sorted(code.co_varnames)[:MOST_NAMES] if code.co_name != "<module>" else None,
        loops=[_loop(places, number, which) for which in range(len(place.around))],
    )


def _loop(places: list[Place], here: int, which: int) -> DescribedLoop:
    place = places[here]
    node, function, file, scope = place.around[which], place.function, place.file, place.scope
    turn = Round(node.body, scope)
    exits = [*_exits(node, scope), *_caught(node, function)]
    test = condition(node.test, scope) if isinstance(node, ast.While) else Condition()
    head = names_in(test) if isinstance(node, ast.While) else parsed_source.names(node.target)
    wanted = {*head, *(name for way in exits for guard in way.guards for name in names_in(guard))}
    assigned: dict[str, list[Assignment]] = {}
    tree = parsed_source.tree_of(file)
    for _ in range(ROUNDS if tree is not None else 0):
        assigned.update(assignments(node.body, function, tree, wanted, scope, turn))  # type: ignore[arg-type]
        statements = [each for given in assigned.values() for each in given]
        wanted = {name for each in statements for guard in each.guards for name in names_in(guard)}
        wanted |= {name for each in statements if each.same or each.sum for name in each.reads}
        wanted -= assigned.keys()
    loop = DescribedLoop(
        first=node.lineno,
        header=node.body[0].lineno - 1 if node.body[0].lineno > node.lineno else node.lineno,
        last=node.body[-1].end_lineno or 0,
        exits=exits,
        assigned=assigned,
        accounted=[name for name in assigned if _is_accounted(name, tree, scope)],
        undone=undone(Tested(node, file, place.name, scope, turn), test, exits),
    )
    if isinstance(node, ast.While):
        kept = not isinstance(node.test, ast.Constant) and stays_true(node, function)  # type: ignore[arg-type]
        counts, words = _counted_up(node, scope), f"while {text(node.test)}"[:200]
        return replace(loop, kind="while", text=words, test=test, stays_true=kept, counts=counts)
    names = parsed_source.names(node.target)
    return replace(
        loop,
        kind="for",
        text=f"for {text(node.target)} in {text(node.iter)}"[:200],
        iterates=replace(iterated(node.iter, scope), held=held_by(places, here, which)),
        targets=[Side(text=name, value=shown(scope.find(expression(name)))) for name in names],
        counts=_counter(node, scope),
    )


def _is_accounted(name: str, tree: ast.Module | None, scope: Scope) -> bool:
    """Everything that changes it is in the user's files, and was read."""
    if " in " in name:
        return tree is not None and keeps_to_itself(name, tree)
    return not name.isidentifier() and owner_of(name, scope) is not None


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
        return "raise" if _is_a_stop(raised) else None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return "exit" if text(statement.value.func) in _LEAVING else None
    return None


def _is_a_stop(raised: ast.expr) -> bool:
    """An exception that is meant to end a loop: one of Python's for this, or one of the user's own."""
    name = text(raised).rpartition(".")[2]
    return name in _STOPS or name not in _BUILT_IN


def _caught(loop: LoopNode, function: ast.AST) -> list[WayOut]:
    """A `try` around the loop that waits for such an exception: whatever is called inside may raise it."""
    around = [
        node
        for node in ast.walk(function)
        if isinstance(node, TRY) and any(inner is loop for part in node.body for inner in ast.walk(part))
    ]
    awaited = [(handler, kind) for node in around for handler in node.handlers for kind in _kinds(handler)]
    return [
        WayOut(line=handler.lineno, kind="raise", guards=[Condition(text=f"except {text(kind)}")])
        for handler, kind in awaited[:MOST_EXITS]
        if _is_a_stop(kind) and text(kind) != "KeyboardInterrupt"
    ]


def _kinds(handler: ast.ExceptHandler) -> list[ast.expr]:
    if handler.type is None:
        return []
    return handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]


# --- rounds --------------------------------------------------------------------------------------------------------


def _counted_up(node: ast.While, scope: Scope) -> Counter | None:
    """The whole number to which each round adds 1, from where it stands."""
    for statement in node.body:
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
            added, now = statement.value, scope.find(statement.target)
            if isinstance(added, ast.Constant) and added.value == 1 and type(now) is int:
                return Counter(name=text(statement.target), least=now, most=ENDLESS)
    return None


def _counter(node: ast.For | ast.AsyncFor, scope: Scope) -> Counter | None:
    """The name that counts the rounds of a `for … in enumerate(…)` or `range(…)`, and from where to where."""
    call = node.iter
    if not isinstance(call, ast.Call) or not call.args:
        return None
    function, target = text(call.func).rpartition(".")[2], node.target
    if function in ("range", "trange") and isinstance(target, ast.Name) and len(call.args) <= 2:
        start, stop = scope.find(call.args[0]) if len(call.args) == 2 else 0, scope.find(call.args[-1])
        known = type(start) is int and type(stop) is int
        return Counter(name=target.id, least=start, most=stop - 1) if known else None
    counted = function == "enumerate" and len(call.args) == 1 and isinstance(target, ast.Tuple)
    if not counted or not isinstance(target.elts[0], ast.Name):  # type: ignore[attr-defined]
        return None
    thing = scope.find(call.args[0])
    rounds = None if thing is UNKNOWN else lengths.length(thing)
    return None if rounds is None else Counter(name=text(target.elts[0]), most=rounds - 1)  # type: ignore[attr-defined]
