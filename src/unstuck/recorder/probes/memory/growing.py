"""What grows from step to step: containers, and graphs of tensors, that the training's own names reach.

Loaded on request only. Compared with the snapshot before by path and identity; nothing but numbers is remembered.
"""

from __future__ import annotations

import ast
import os
import sys
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from time import thread_time
from types import FrameType
from typing import Any

from ... import flight, journal, user_code
from ...objects import class_name, ids, length, some_items
from ...probe import Probe
from ...records import Site
from ...records.loops import Grower, GrowerKind, GrowthSnapshot
from ..loops.parsed_source import FUNCTIONS, tree_of
from . import device_memory
from .graph_growth import LEAF, walk
from .reachable import CACHE, Reached, reached

MOST_KNOWN = 4000  # containers and graphs that are remembered
MOST_GROWERS = 8  # in a record
MOST_GRAPHS = 24  # that are walked
GRAPH_NODES = 4000
GRAPH_SECONDS, GRAPHS_SECONDS = 0.005, 0.01  # for one, and for all
IDLE_SNAPSHOTS = 3  # without growth, after which it is counted anew
ELEMENTS, LATEST = 16, 3  # of a container that are weighed
_NESTED = ids(list, tuple, dict, deque)
_KINDS: dict[str, GrowerKind] = {"itertools.cycle ": "cycle", CACHE: "cache"}
_CALLED = {"cycle": "cycle", "hooks": "register_forward_hook"}  # what the statement calls that fills it
_FILLING = frozenset(
    ("append", "appendleft", "extend", "insert", "add", "update", "setdefault", "put", "push", "store", "cycle")
)

_CACHING = frozenset(("cache", "lru_cache"))
_JOINING = frozenset(("cat", "concat", "concatenate", "vstack", "hstack", "append"))


class Known:
    """How long one container was: at first, and at the last snapshot."""

    __slots__ = ("first", "first_step", "idle", "length", "number", "step", "times")

    def __init__(self, number: int, count: int, step: int) -> None:
        self.number, self.first, self.first_step = number, count, step
        self.length, self.step, self.times, self.idle = count, step, 0, 0

    def grown(self, count: int, step: int) -> bool:
        """Note the length of now. True if it is longer, and steps were made meanwhile."""
        longer = count > self.length and step > self.step
        if longer:
            self.times, self.idle = self.times + 1, 0
        elif count < self.length or self.idle >= IDLE_SNAPSHOTS:
            self.first, self.first_step, self.times, self.idle = count, step, 0, 0
        else:
            self.idle += 1
        self.length, self.step = count, step
        return longer


class Growth(Probe):
    """Says at a request what is longer than at the one before."""

    name = "growth"

    def forget(self) -> None:
        self._known: dict[str, Known] = {}
        self._newest = -1  # the youngest node that any graph had

    def asked_growth(self, frame: FrameType) -> None:
        began, snapshot = thread_time(), Snapshot(self._known, self._newest)
        try:
            snapshot.look(frame)
            self._known, self._newest = snapshot.kept, snapshot.newest
            if snapshot.growing:
                journal.tell(snapshot.record(began))
        except RecursionError:  # the user's stack is nearly full: perhaps next time
            pass


class Growing:
    """Something that is longer than before, and how much it weighs against others."""

    def __init__(self, item: Reached, known: Known, kind: GrowerKind, capped: bool = False) -> None:
        self._item, self._known, self.kind, self._capped = item, known, kind, capped
        self.holds, self.bytes, self.graph = "", 0, kind == "graph"
        self.by_tensor = False

    @property
    def weight(self) -> float:
        if self.kind == "graph":
            return float(1 << 50) * (1 + self._known.times)
        element = self.bytes + (1 << 40 if self.graph else 0) + 8
        return (self._known.length - self._known.first) * element + (1 << 30 if self.kind == "hooks" else 0)

    def record(self, in_hooks: dict[int, Reached]) -> Grower:
        item, known = self._item, self._known
        by_hook = in_hooks.get(id(item.thing))
        return Grower(
            path=item.path,
            kind=self.kind,
            holds=self.holds,
            graph=self.graph,
            by_tensor=self.by_tensor,
            bytes=self.bytes,
            first=known.first,
            first_step=known.first_step,
            now=known.length,
            step=known.step,
            times=known.times,
            capped=self._capped,
            hook=item.hook or by_hook is not None,
            site=self._site(by_hook),
        )

    def is_joined(self) -> bool:
        """The script adds to it: a batch or a sequence that happens to be longer is no growth."""
        return self._site(None) is not None

    def _site(self, by_hook: Reached | None) -> Site | None:
        """The statement that fills it. If a hook knows it by another name, then that is where it is filled."""
        item = self._item
        there = _statement(by_hook.file, by_hook.written.rpartition(".")[2]) if by_hook is not None else None
        if there is not None or not item.file:
            return there
        name = _CALLED.get(self.kind) or item.written.partition("[")[0].rpartition(".")[2].rpartition(" ")[2]
        return _statement(item.file, name, item.inside)


class Snapshot:
    """One look at everything that can be reached. It is dropped with what it found."""

    def __init__(self, before: dict[str, Known], newest: int) -> None:
        self._before, self._newest_before = before, newest
        self.step, self._torch = flight.steps(), sys.modules["torch"]
        self.kept: dict[str, Known] = {}
        self.newest = -1
        self.growing: list[Growing] = []
        self.objects = 0
        self._in_hooks: dict[int, Reached] = {}

    def look(self, frame: FrameType) -> None:
        with_graph: list[Reached] = []
        for item in reached(frame, self._in_hooks):
            self.objects += 1
            thing = item.thing
            if type(thing) is self._torch.Tensor:
                # Not the elements of a list: that one grows, or it does not.
                if len(with_graph) < MOST_GRAPHS and not item.element and thing.grad_fn is not None:
                    with_graph.append(item)
                if not item.element and len(self.kept) < MOST_KNOWN:
                    self._tensor(item)
                continue
            count = length(thing)
            if count > 0 and len(self.kept) < MOST_KNOWN:
                self._container(item, count)
        until = thread_time() + GRAPHS_SECONDS
        for item in with_graph:
            if thread_time() < until:
                self._graph(item)

    def record(self, began: float) -> GrowthSnapshot:
        heaviest = sorted(self.growing, key=lambda grower: -grower.weight)[:MOST_GROWERS]
        return GrowthSnapshot(
            step=self.step,
            rss=_resident(),
            device=device_memory.allocated(),
            objects=self.objects,
            growing=[grower.record(self._in_hooks) for grower in heaviest],
            seconds=round(thread_time() - began, 5),
        )

    def _container(self, item: Reached, count: int) -> None:
        known = self._before.get(item.path)
        if known is None or known.number != id(item.thing):
            self.kept[item.path] = Known(id(item.thing), count, self.step)
            return
        self.kept[item.path] = known
        if not known.grown(count, self.step):
            return
        if item.hook and " hooks of " in item.written:
            self.growing.append(Growing(item, known, "hooks"))
            return
        special = (kind for words, kind in _KINDS.items() if item.written.startswith(words))
        grown = Growing(item, known, next(special, "container"))
        latest = some_items(item.thing)[-LATEST:]
        self._weigh(grown, [value for _, value in latest])
        if issubclass(type(item.thing), dict):
            grown.by_tensor = bool(latest) and all(self._tensors(key) for key, _ in latest)
        self.growing.append(grown)

    def _tensor(self, item: Reached) -> None:
        """One that is made anew of itself and more each time: another object, by the same name."""
        path, count = f"size of {item.path}", int(item.thing.numel())
        known = self.kept[path] = self._before.get(path) or Known(0, count, self.step)
        grown = Growing(item, known, "tensor")
        if known.grown(count, self.step) and grown.is_joined():
            grown.holds, grown.bytes = "numbers", int(item.thing.element_size())
            self.growing.append(grown)

    def _weigh(self, grown: Growing, latest: list[Any]) -> None:
        """Type of the elements, bytes of the tensors of one, and whether they carry a graph: from its latest ones."""
        tensors = [part for value in latest for part in self._tensors(value)]
        stored = sum(part.untyped_storage().nbytes() for part in tensors if part.device.type != "meta")
        grown.holds = class_name(type(latest[-1])) if latest else ""
        grown.bytes = stored // max(1, len(latest))
        grown.graph = any(part.grad_fn is not None for part in tensors)

    def _tensors(self, value: Any, depth: int = 0) -> list[Any]:
        if type(value) is self._torch.Tensor:
            return [value]
        if depth > 2 or id(type(value)) not in _NESTED:
            return []
        return [part for _, inner in some_items(value)[:ELEMENTS] for part in self._tensors(inner, depth + 1)]

    def _graph(self, item: Reached) -> None:
        """A tensor's own graph: it grows if it reaches back before the last snapshot, further each time."""
        node = item.thing.grad_fn
        path = f"graph of {item.path}"
        walked = walk(node, self._newest_before, GRAPH_NODES, GRAPH_SECONDS)
        known = self._before.get(path)
        number = int(node._sequence_nr())
        self.newest = max(self.newest, number if number < LEAF else -1)
        if known is None or not walked.older:
            self.kept[path] = Known(0, walked.nodes, self.step)
            return
        self.kept[path] = known
        if walked.capped and self.step > known.step:  # more than was counted, and it reaches back before
            known.times, known.length, known.step = known.times + 1, walked.nodes, self.step
        elif not known.grown(walked.nodes, self.step):
            known.times = 0
        if known.times:
            self.growing.append(Growing(item, known, "graph", walked.capped))


def _resident() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# --- the statement that makes a container grow, as far as the source says it ---------------------------------------


def _statement(file: str, name: str, function: str = "") -> Site | None:
    """Where something is put into `name`; in `function`, if it is done there."""
    statements = _statements(file).get(name)
    if not statements:
        return None
    short = function.rpartition(".")[2]
    line, inside = next((pair for pair in statements if pair[1].rpartition(".")[2] == short), statements[0])
    return user_code.absolute(file), line, inside or "<module>"


@lru_cache(maxsize=32)
def _statements(file: str) -> dict[str, list[tuple[int, str]]]:
    """By name: line and function of each statement that puts something into it."""
    by_name: dict[str, list[tuple[int, str]]] = {}
    tree = tree_of(file)
    waiting: list[tuple[ast.AST, str]] = [] if tree is None else [(tree, "")]
    while waiting:
        node, function = waiting.pop()
        for name in _grown_by(node):
            by_name.setdefault(name, []).append((node.lineno, function))  # type: ignore[attr-defined]  # statements
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            function = f"{function}.{node.name}" if function else node.name
        waiting.extend((child, function) for child in ast.iter_child_nodes(node))
    return by_name


def _grown_by(node: ast.AST) -> Iterator[str]:
    """Names that the node puts something into."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _FILLING:
            yield _last(node.func.value)
        called = _last(node.func)
        if called == "cycle" or (called.startswith("register_") and called.endswith("_hook")):
            yield called
    elif isinstance(node, FUNCTIONS):
        for decorator in node.decorator_list:
            if _last(decorator.func if isinstance(decorator, ast.Call) else decorator) in _CACHING:
                yield node.name
    elif isinstance(node, ast.AugAssign):
        yield _last(node.target)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) or _is_in(_last(target), node.value):
                yield _last(target)


def _is_in(name: str, value: ast.expr) -> bool:
    """`history = history + [loss]`, `history = [*history, loss]`, `keys = torch.cat([keys, new])`."""
    joins = isinstance(value, ast.Call) and _last(value.func) in _JOINING
    if not joins and not isinstance(value, (ast.BinOp, ast.List)):
        return False
    return any(_last(part) == name for part in ast.walk(value) if isinstance(part, (ast.Name, ast.Attribute)))


def _last(node: ast.AST) -> str:
    """The name closest to what is grown: history of `self.history["loss"]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
