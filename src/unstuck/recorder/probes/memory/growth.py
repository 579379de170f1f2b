"""What grows from step to step: containers, and graphs of tensors, that the training's own names reach.

Loaded on request only. Compared with the answer before by path and identity; nothing but numbers is remembered.
"""

from __future__ import annotations

import sys
from collections import deque
from time import thread_time

from ... import flight
from ...objects import Found, ends, length, reached
from . import device, graph_growth, growers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

REMEMBERED = 4000
TOLD = 8
GRAPHS = 24
GRAPH_NODES = 4000
GRAPH_SECONDS, GRAPHS_SECONDS = 0.005, 0.01
IDLE_ANSWERS = 3


class Known:
    """How long one container was: at first, and at the last answer."""

    __slots__ = ("first", "first_step", "idle", "length", "number", "step", "times")

    def __init__(self, number: int, count: int, step: int) -> None:
        self.number, self.first, self.first_step = number, count, step
        self.length, self.step, self.times, self.idle = count, step, 0, 0

    def grown(self, count: int, step: int) -> bool:
        """Note the length of now. True if it is longer, and steps were made meanwhile."""
        longer = count > self.length and step > self.step
        if longer:
            self.times, self.idle = self.times + 1, 0
        elif count < self.length or self.idle >= IDLE_ANSWERS:
            self.first, self.first_step, self.times, self.idle = count, step, 0, 0
        else:
            self.idle += 1
        self.length, self.step = count, step
        return longer


_known: dict[str, Known] = {}
_newest = -1  # the youngest node that any graph had at the last answer


def describe(frame: FrameType) -> dict[str, object] | None:
    """What is longer than at the answer before; None where nothing is."""
    global _known, _newest
    began, step = thread_time(), flight.steps()
    kept: dict[str, Known] = {}
    growing: list[tuple[float, dict[str, object]]] = []
    in_hooks: dict[int, Found] = {}
    ends_of_graphs: list[Found] = []
    objects = 0
    torch: Any = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        for found in reached(frame, in_hooks):
            objects += 1
            thing = found.thing
            if type(thing) is torch.Tensor:
                # Not the elements of a list: that one grows, or it does not.
                if len(ends_of_graphs) < GRAPHS and not found.element and thing.grad_fn is not None:
                    ends_of_graphs.append(found)
                continue
            count = length(thing)
            if count > 0 and len(kept) < REMEMBERED:
                _of_container(found, count, step, kept, growing, torch)
        newest = -1
        until = thread_time() + GRAPHS_SECONDS
        for found in ends_of_graphs:
            if thread_time() < until:
                newest = max(newest, _of_graph(found, step, kept, growing))
    _known, _newest = kept, newest
    if not growing:
        return None
    growing.sort(key=lambda pair: -pair[0])
    told = [each for _, each in growing[:TOLD]]
    for each in told:
        _by_hook(each, in_hooks)
    return {
        "step": step,
        "rss": _resident(),
        "device": device.allocated(),
        "objects": objects,
        "seconds": round(thread_time() - began, 5),
        "growing": told,
    }


def _by_hook(told: dict[str, object], in_hooks: dict[int, Found]) -> None:
    """A hook knows it by another name: then that is where it is filled."""
    found = in_hooks.get(told.pop("id"))  # type: ignore[call-overload]  # put there by _told
    if found is not None:
        told["hook"] = True
        told["site"] = growers.statement(found.file, found.written.rpartition(".")[2]) or told["site"]


def _of_container(
    found: Found,
    count: int,
    step: int,
    kept: dict[str, Known],
    growing: list[tuple[float, dict[str, object]]],
    torch: Any,
) -> None:
    known = _known.get(found.path)
    if known is None or known.number != id(found.thing):
        kept[found.path] = Known(id(found.thing), count, step)
        return
    kept[found.path] = known
    if not known.grown(count, step):
        return
    thing = found.thing
    most = thing.maxlen if type(thing) is deque else None
    hooks = found.hook and " hooks of " in found.written
    holds, size, carries = ("hooks", 0, False) if hooks else _contents(thing, torch)
    kind = "itertools.cycle" if found.written.startswith("itertools.cycle ") else type(thing).__name__
    told = _told(found, known, "hooks" if hooks else kind)
    told.update(holds=holds, bytes=size, graph=carries, maxlen=most)
    weight = (count - known.first) * (size + (1 << 40 if carries else 0) + 8) + (1 << 30 if hooks else 0)
    growing.append((weight, told))


def _of_graph(found: Found, step: int, kept: dict[str, Known], growing: list[tuple[float, dict[str, object]]]) -> int:
    """A tensor's own graph: it grows if it reaches back before the last answer, further each time."""
    node = found.thing.grad_fn
    path = f"graph of {found.path}"
    walk = graph_growth.walk(node, _newest, GRAPH_NODES, GRAPH_SECONDS)
    known = _known.get(path)
    if known is None or not walk.older:
        kept[path] = Known(0, walk.nodes, step)
    else:
        kept[path] = known
        if walk.capped and step > known.step:  # more than was counted, and it reaches back before the last answer
            known.times, known.length, known.step = known.times + 1, walk.nodes, step
        elif not known.grown(walk.nodes, step):
            known.times = 0
        if known.times:
            told = _told(found, known, "graph")
            told.update(holds="nodes", bytes=0, graph=True, capped=walk.capped)
            growing.append((float(1 << 50) * (1 + known.times), told))
    number = node._sequence_nr()
    return int(number) if number < graph_growth.LEAF else -1


def _told(found: Found, known: Known, kind: str) -> dict[str, object]:
    written = found.written
    name = written.partition("[")[0].rpartition(".")[2]
    if kind == "itertools.cycle":
        name = "cycle"
    elif kind == "hooks":
        name = {"forward hooks": "register_forward_hook"}.get(written.partition(" of ")[0], "register_forward_hook")
    site = growers.statement(found.file, name, found.inside) if found.file else None
    return {
        "id": id(found.thing),
        "path": found.path,
        "kind": kind,
        "first": known.first,
        "first_step": known.first_step,
        "now": known.length,
        "times": known.times,
        "hook": found.hook,
        "site": site,
    }


def _contents(thing: Any, torch: Any) -> tuple[str, int, bool]:
    """Type of the elements, bytes of the tensors of one, and whether they carry a graph: from its latest ones."""
    latest = [value for _, value in ends(thing)[-3:]]
    if not latest:
        return "", 0, False
    tensors = [part for value in latest for part in _tensors(value, torch)]
    size = sum(part.untyped_storage().nbytes() for part in tensors if part.device.type != "meta") // len(latest)
    carries = any(part.grad_fn is not None for part in tensors)
    return type(latest[-1]).__name__, size, carries


def _tensors(value: Any, torch: Any, depth: int = 0) -> list[Any]:
    if type(value) is torch.Tensor:
        return [value]
    if depth > 2 or type(value) not in (list, tuple, dict, deque):
        return []
    return [part for _, inner in ends(value)[:16] for part in _tensors(inner, torch, depth + 1)]


def _resident() -> int:
    import os

    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
