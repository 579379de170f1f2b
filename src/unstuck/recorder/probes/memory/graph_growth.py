"""Walks an autograd graph from its end: how many nodes, and how old the oldest. Saved tensors are never touched.

In full steps the graph of the loss is walked at those calls of backward whose number is a power of two. What was there
before the call at which it was last walked is its old part; a training that lets go of each step has none.
"""

from __future__ import annotations

import sys
from heapq import heappop, heappush
from time import thread_time

from ... import facts, flight, guard, user_code
from ... import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

NODES = 20_000
SHORTEST, LONGEST = 0.005, 0.03
"""Seconds for one walk: a quarter of a step, but never less or more than these."""
LEAF = 1 << 62
"""Accumulating nodes of parameters have the highest of all numbers: they are of no age."""
MOST_CALLS = 1 << 14
_points: list[dict[str, Any]] = []
_newest = -1
_calls = 0


class Walk:
    """What one walk has found. Numbers rise with every operation of a thread: a lower one is older."""

    __slots__ = ("capped", "nodes", "older", "oldest")

    def __init__(self) -> None:
        self.nodes = self.older = 0
        self.oldest = LEAF
        self.capped = False


def walk(root: Any, before: int, nodes: int, seconds: float) -> Walk:
    """Count nodes, and those numbered `before` or lower; the oldest first, so that a short walk finds these too."""
    found = Walk()
    until = thread_time() + seconds
    seen = {root}
    heap = [(root._sequence_nr(), 0, root)]
    while heap:
        number, _, node = heappop(heap)
        found.nodes += 1
        if number < LEAF:
            found.oldest = min(found.oldest, number)
            found.older += number <= before
        if found.nodes >= nodes or (found.nodes & 63 == 0 and thread_time() > until):
            found.capped = True
            return found
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                heappush(heap, (following._sequence_nr(), len(seen), following))
    return found


def at_backward(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Called in full steps, before the backward pass, on the thread that asked for it."""
    global _newest, _calls
    _calls += 1
    if _calls & (_calls - 1) or _calls > MOST_CALLS or "graph" in guard.OFF:
        return
    try:
        root = _root(arguments[0] if arguments else options.get("tensors"))
        if root is None:
            return
        newest = root._sequence_nr()
        if newest >= LEAF:
            return
        if 0 <= _newest < newest:
            _note(walk(root, _newest, NODES, _allowed()))
        _newest = newest
    except Exception as fault:
        guard.off("graph", fault)


def _note(found: Walk) -> None:
    if not found.older:
        _points.clear()
        return
    more = bool(_points) and found.older > _points[-1]["old"] and found.oldest == _points[-1]["oldest"]
    grown = more or (bool(_points) and found.capped)  # what is old, and more than could be walked through
    if not grown:
        _points.clear()  # it let go of what it had, or keeps a part that stays as it is
    point = {"call": _calls, "step": flight.steps(), "nodes": found.nodes, "old": found.older}
    _points.append({**point, "capped": found.capped, "oldest": found.oldest})
    if grown:
        facts.tell("graph", {"points": _points[-16:], "site": _site()})


def _site() -> list[str | int] | None:
    """The user's line that calls backward."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not user_code.is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    return [user_code.absolute(frame.f_code.co_filename), frame.f_lineno, user_code.name_of(frame.f_code)]


def _root(tensors: Any) -> Any:
    """Node at the end of the graph; of several tensors the first that has one."""
    torch = sys.modules["torch"]
    several = tensors if type(tensors) in (list, tuple) else (tensors,)
    with torch._C.DisableTorchFunction():
        for tensor in several:
            if type(tensor) is torch.Tensor and tensor.grad_fn is not None:
                return tensor.grad_fn
    return None


def _allowed() -> float:
    w = flight.words
    last = at.RING + (w[at.W_RING] - 1) % at.RING_STEPS * at.STEP_WORDS
    return min(LONGEST, max(SHORTEST, w[last + 1] / 4e9))
