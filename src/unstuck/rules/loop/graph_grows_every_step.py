"""graph-grows-every-step: the backward pass goes back through all the steps before.

What it sees
    At the call of backward the loss's autograd graph holds nodes made in earlier steps, more at every look, back to
    the same beginning: something of the last step (a hidden state, a running loss) goes into the next one without
    `detach`.

Why it matters
    Each backward pass goes through every step so far, so a step takes longer and keeps more memory than the one before,
    until memory ends or nobody waits any longer. It is also why `retain_graph=True` was needed.

Evidence
    Steps at which the graph was walked, its nodes, and how many of them are older than the step before that look.

Fix
    Detach what is carried over: `hidden = hidden.detach()` before it goes into the next step; then drop `retain_graph`.

When it is wrong
    A part of the graph that is kept on purpose stays as large as it is; windows of truncated backpropagation let go of
    the old part again; longer sequences make new nodes, not old ones: none of these is named. A single sequence trained
    end to end over several dozen optimizer steps would be, and is as costly.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.loops import GraphPoint, LossGraph
from unstuck.rules.rule import Rule
from unstuck.rules.words import process_name

POINTS = 4
LAST_CALL = 64
"""It must still grow at this call of backward: windows of truncated backpropagation are rarely longer."""


def decide(case: Case) -> Iterable[Finding]:
    for graph in {graph.pid: graph for graph in case.loss_graphs}.values():
        points = graph.points
        if len(points) >= POINTS and points[-1].call >= LAST_CALL and _rises(points):
            yield _finding(case, graph)


def _rises(points: list[GraphPoint]) -> bool:
    """Each look found more that is old, or as much as could be counted, and all reach back to the same node."""
    same = len({point.oldest for point in points if not point.capped}) <= 1
    return same and all(later.old > earlier.old or later.capped for earlier, later in pairwise(points))


def _finding(case: Case, graph: LossGraph) -> Finding:
    flight, points = case.flight_of(graph.pid), graph.points
    file, line, function = graph.site or (None, None, None)
    shown = points[:1] + points[1:-1][-3:] + points[-1:]
    counts = ", ".join(f"{p.old:,}{'+' if p.capped else ''} at {_when(p)}" for p in shown)
    return RULE.finding(
        severity="warning",
        confidence=0.95,
        title="the graph behind the loss grows with every step: something of the last step is never detached",
        evidence=(
            "nodes of the loss's graph that are older than the look before, in "
            f"{process_name(case, graph.pid)}: {counts}",
            "each time the oldest of them was the same: the graph reaches back to the beginning of the training",
        ),
        where=Where(
            file=file,
            line=line,
            function=function,
            pid=graph.pid,
            rank=flight.rank if flight else None,
            step=flight.step if flight else points[-1].step,
        ),
        fix=Fix(
            "Detach what is carried into the next step: `hidden = hidden.detach()` (for an LSTM: "
            "`hidden = tuple(h.detach() for h in hidden)`), then drop `retain_graph=True`."
        ),
        seen_by="flight",
    )


def _when(point: GraphPoint) -> str:
    if point.call - point.step in (0, 1):
        return f"step {point.step:,}"
    return f"call {point.call:,} of backward (step {point.step:,})"


RULE = Rule(
    "graph-grows-every-step",
    "loop",
    decide,
    explains=frozenset({"step-time-grows", "memory-leak-in-loop"}),
    gathers=True,
)
