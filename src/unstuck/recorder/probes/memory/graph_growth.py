"""Walks an autograd graph from its end: how many nodes, and how old the oldest. Saved tensors are never touched.

In full steps the graph of the loss is walked at those calls of backward whose number is a power of two. What was there
before the call at which it was last walked is its old part; a training that lets go of each step has none.
"""

from __future__ import annotations

import sys
from heapq import heappop, heappush
from time import thread_time
from types import FrameType
from typing import Any

from ... import flight, journal, user_code
from ... import layout as at
from ...probe import Probe
from ...records.loops import GraphPoint, LossGraph

NODES = 20_000
SHORTEST, LONGEST = 0.005, 0.03  # seconds for one walk: a quarter of a step, but never less or more than these
LEAF = 1 << 62  # accumulating nodes of parameters have the highest of all numbers: they are of no age
MOST_CALLS = 1 << 14
POINTS = 16


class GraphWalk:
    """What one walk found. Numbers rise with every operation of a thread: a lower one is older."""

    def __init__(self) -> None:
        self.nodes = self.older = 0
        self.oldest = LEAF
        self.capped = False


def walk(root: Any, before: int, nodes: int, seconds: float) -> GraphWalk:
    """Count nodes, and those numbered `before` or lower; the oldest first, so that a short walk finds these too."""
    walked = GraphWalk()
    until = thread_time() + seconds
    seen = {root}
    heap = [(root._sequence_nr(), 0, root)]
    while heap:
        number, _, node = heappop(heap)
        walked.nodes += 1
        if number < LEAF:
            walked.oldest = min(walked.oldest, number)
            walked.older += number <= before
        if walked.nodes >= nodes or (walked.nodes & 63 == 0 and thread_time() > until):
            walked.capped = True
            return walked
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                heappush(heap, (following._sequence_nr(), len(seen), following))
    return walked


class GraphGrowth(Probe):
    """Walks the graph of the loss, and tells where its old part grows. Not governed: its walks are fifteen in all, each
    no more than a quarter of a step, and a run may be over before there is time for one."""

    name = "graph"

    def forget(self) -> None:
        self._points: list[GraphPoint] = []
        self._newest = -1
        self._calls = 0

    def before_backward(self, root: Any, frame: FrameType) -> None:
        self._calls += 1
        if self._calls & (self._calls - 1) or self._calls > MOST_CALLS:
            return
        node = root.grad_fn if type(root) is sys.modules["torch"].Tensor else None
        newest = LEAF if node is None else node._sequence_nr()
        if newest >= LEAF:
            return
        if 0 <= self._newest < newest:
            self._note(walk(node, self._newest, NODES, _allowed()), frame)
        self._newest = newest

    def _note(self, walked: GraphWalk, frame: FrameType) -> None:
        last = self._points[-1] if self._points else None
        more = last is not None and walked.older > last.old and walked.oldest == last.oldest
        grown = walked.older > 0 and (more or (last is not None and walked.capped))  # more than could be walked through
        if not grown:
            self._points.clear()  # it let go of what it had, or keeps a part that stays as it is
        if not walked.older:
            return
        self._points.append(
            GraphPoint(
                call=self._calls,
                step=flight.steps(),
                nodes=walked.nodes,
                old=walked.older,
                capped=walked.capped,
                oldest=walked.oldest,
            )
        )
        del self._points[:-POINTS]
        if grown:
            journal.tell(LossGraph(points=list(self._points), site=user_code.site_of(frame)))


def _allowed() -> float:
    w = flight.words
    last = at.RING + (w[at.W_RING] - 1) % at.RING_STEPS * at.STEP_WORDS
    return min(LONGEST, max(SHORTEST, w[last + 1] / 4e9))
