"""A term of the loss that has no graph though the model's weights are in it: `mse + 10 * penalty`, and the penalty is
made of a derivative that was taken without `create_graph`, or of `p.data`.

That a term has no graph is seen at the loss: one side of an addition is missing, or leads to inputs only. Which one it
is, and which line made it so, is read from the source, side by side with the graph. What the script cuts off itself
(`.detach()`, `.item()`, `no_grad`) is meant so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

import torch

from ... import user_code
from ...records.learning import TermCut
from ..loops.parsed_source import scope_name
from . import graph_reading, script_lines
from .graph_reading import Trained
from .loss_source import Source
from .lost_update import Scope

MAX_HOPS = 20  # from a name to its value, from a call to what it returns
MAX_TERM = 80  # letters of a term that are told
MAX_LOOKS = 4  # at one loss, until something is found: what derivatives are taken of is noted meanwhile
KEEPS = ("mean", "sum", "scale", "pow", "square", "abs")  # calls that a loss goes through
Path = tuple[int, ...]
Derivatives = dict[tuple[str, int], frozenset[int]]  # by file and line: identities of weights
Term = tuple[ast.expr, Scope, Path]  # with where it stands, and the way from the loss to its side


class Found(NamedTuple):
    cut: TermCut
    path: Path


class TermCuts:
    """By the line of a loss: its term without a graph, as long as every graph shows it."""

    def __init__(self, derivatives: Derivatives) -> None:
        self._derivatives = derivatives
        self._found: dict[tuple[str, int], Found | None] = {}
        self._looks: dict[tuple[str, int], int] = {}

    def look(self, root: Any, frame: FrameType, trained: Trained, weights: set[int]) -> None:
        """`weights`: identities of those that the loss does reach. A derivative of others is a target, as in a DDPG."""
        here = script_lines.user_frame(frame)
        if here is None:
            return
        key = here.f_code.co_filename, here.f_lineno
        found = self._found.get(key)
        if found is not None:
            if _is_missing(root, found.path, trained):
                found.cut.seen += 1  # type: ignore[misc]  # it is not written yet
            else:
                self._found[key] = None
        elif key not in self._found and graph_reading.lacks_a_term(root, trained, bool(self._derivatives)):
            looks = self._looks[key] = self._looks.get(key, 0) + 1
            of_these = [place for place, derived in self._derivatives.items() if not weights.isdisjoint(derived)]
            found = find(root, here, trained, of_these)
            if found is not None or looks >= MAX_LOOKS:
                self._found[key] = found

    def record(self) -> TermCut | None:
        return next((found.cut for found in self._found.values() if found is not None), None)


def _is_missing(root: Any, path: Path, trained: Trained) -> bool:
    node = graph_reading.at(root, path[:-1])
    if node is None or graph_reading.name_of(node) not in graph_reading.SUMMING:
        return False
    return not graph_reading.reaches(node.next_functions[path[-1]][0], trained)


def find(root: Any, frame: FrameType, trained: Trained, derivatives: list[tuple[str, int]]) -> Found | None:
    """`derivatives`: where one was taken of what these weights are in, without a graph."""
    lines = [line for file, line in derivatives if file == frame.f_code.co_filename]
    terms = Terms(Source(frame.f_code.co_filename, lines), trained)
    source, file = terms.source, user_code.absolute(frame.f_code.co_filename)
    for given, scope in source.given_to_backward(frame.f_lineno):
        for term, where, path in terms.missing(given, root, scope):
            if where is scope and isinstance(term, ast.Name) and _has_graph(frame, term.id, trained):
                continue
            cause = source.cause(term, where)
            if cause is not None:
                op, line, function = cause
                added = file, term.lineno, scope_name(where)
                text = ast.unparse(term)[:MAX_TERM]
                return Found(TermCut(term=text, op=op, site=(file, line, function), loss=added, seen=1), path)
    return None


def _has_graph(frame: FrameType, name: str, trained: Trained) -> bool:
    value: Any = script_lines.names_in(frame).get(name)
    return type(value) is torch.Tensor and graph_reading.reaches(value.grad_fn, trained)


class Terms:
    """What is added up in a loss, as the source writes it and as the graph has it."""

    def __init__(self, source: Source, trained: Trained) -> None:
        self.source, self._trained = source, trained

    def missing(
        self, given: ast.expr, node: Any, scope: Scope, path: Path = (), until: int = 1 << 30, hops: int = MAX_HOPS
    ) -> Iterator[Term]:
        """Those that lead to nothing that is trained. `until`: a line; what a name is given later is not meant."""
        if hops <= 0:
            return
        if isinstance(given, ast.Name):
            for value, line in reversed(self.source.values(given.id, scope)):
                if line < until:
                    yield from self.missing(value, node, scope, path, line, hops - 1)
        elif isinstance(given, ast.BinOp) and isinstance(given.op, ast.Add | ast.Sub):
            yield from self._in_sum([given.left, given.right], node, scope, path, until, hops)
        elif isinstance(given, ast.BinOp):
            following = _only(node, ("MulBackward", "DivBackward", "PowBackward"))
            for side in (given.left, given.right):
                if following is not None and isinstance(side, ast.BinOp | ast.Name | ast.Call):
                    place, edge = following
                    yield from self.missing(side, edge, scope, (*path, place), until, hops - 1)
        elif isinstance(given, ast.Call):
            yield from self._in_call(given, node, scope, path, until, hops)

    def _in_sum(
        self, sides: list[ast.expr], node: Any, scope: Scope, path: Path, until: int, hops: int
    ) -> Iterator[Term]:
        edges = [part for part, _ in node.next_functions]
        numbers = any(isinstance(side, ast.Constant) for side in sides)  # torch may have turned the two around
        adds = graph_reading.name_of(node) in graph_reading.SUMMING
        if not adds or len(edges) != 2 or numbers:
            return
        for place, (side, edge) in enumerate(zip(sides, edges, strict=True)):
            if graph_reading.reaches(edge, self._trained):
                yield from self.missing(side, edge, scope, (*path, place), until, hops - 1)
            else:
                yield side, scope, (*path, place)

    def _in_call(self, call: ast.Call, node: Any, scope: Scope, path: Path, until: int, hops: int) -> Iterator[Term]:
        if graph_reading.name_of(node) in graph_reading.DISTANCES and len(call.args) > 1:
            yield from self._in_sum(call.args[:2], node, scope, path, until, hops)
            return
        name, following = script_lines.called(call), _only(node, graph_reading.IN_LOSS)
        if name in KEEPS and not self.source.is_defined(name) and following is not None:
            place, edge = following
            own = call.func.value if isinstance(call.func, ast.Attribute) else None
            given = next((each for each in (*call.args[:1], own) if not isinstance(each, ast.Constant)), None)
            if given is not None:
                yield from self.missing(given, edge, scope, (*path, place), until, hops - 1)
        for value, function in self.source.returned(call):
            yield from self.missing(value, node, function, path, hops=hops - 1)


def _only(node: Any, kinds: tuple[str, ...]) -> tuple[int, Any] | None:
    """The only node that this one, of these kinds, was given a result of, and its place."""
    edges = [(place, part) for place, (part, _) in enumerate(node.next_functions) if part is not None]
    return edges[0] if len(edges) == 1 and graph_reading.name_of(node) in kinds else None
