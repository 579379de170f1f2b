"""graph-grows-every-step: the backward pass goes back through all the steps before.

What it sees
    When backward is called, the loss's autograd graph holds nodes created in earlier steps, more each time it is
    checked, back to the same beginning: something of the last step (a hidden state, a running loss) goes into the next
    one without `detach`.

Why it matters
    Each backward pass goes through every step so far, so a step takes longer and keeps more memory than the one before,
    until the run is out of memory or too slow to wait for. It is also why `retain_graph=True` was needed.

Evidence
    Steps at which the graph was walked, and how many of its nodes were already there at the walk before.

Fix
    Detach what is carried over: `hidden = hidden.detach()` before it goes into the next step; then drop `retain_graph`.

When it is wrong
    A part of the graph that is kept on purpose does not grow; windows of truncated backpropagation drop the old part
    again; longer sequences make new nodes, not old ones: none of these is reported. A single sequence trained end to
    end over several dozen optimizer steps would be, and is as costly.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.loops import GraphPoint, LossGraph
from unstuck.rules.rule import Rule
from unstuck.rules.words import process_name

MIN_WALKS = 4
MIN_LAST_CALL = 64  # of backward, at which it still grows: windows of truncated backpropagation are rarely longer


def decide(case: Case) -> Iterable[Finding]:
    for graph in {graph.pid: graph for graph in case.loss_graphs}.values():
        walks = graph.points
        if len(walks) >= MIN_WALKS and walks[-1].call >= MIN_LAST_CALL and _rises(walks):
            yield _finding(case, graph)


def _rises(walks: list[GraphPoint]) -> bool:
    """Each walk found more old nodes, or as many as could be counted, and all reach back to the same node."""
    same = len({walk.oldest for walk in walks if not walk.capped}) <= 1
    return same and all(later.old > earlier.old or later.capped for earlier, later in pairwise(walks))


def _finding(case: Case, graph: LossGraph) -> Finding:
    flight, walks = case.flight_of(graph.pid), graph.points
    file, line, function = graph.site or (None, None, None)
    shown = walks[:1] + walks[1:-1][-3:] + walks[-1:]
    counts = ", ".join(f"{walk.old:,}{'+' if walk.capped else ''} at {_when(walk)}" for walk in shown)
    return RULE.finding(
        severity="warning",
        confidence=0.95,
        title="the autograd graph of the loss grows with every step: something of the last step is never detached",
        evidence=(
            f"nodes of the loss's graph that were there at the check before, in {process_name(case, graph.pid)}: "
            f"{counts}",
            "the oldest of them is always the same: the graph reaches back to the beginning of the training",
        ),
        where=Where(
            file=file,
            line=line,
            function=function,
            pid=graph.pid,
            rank=flight.rank if flight else None,
            step=flight.step if flight else walks[-1].step,
        ),
        fix=Fix(
            "Detach what is carried into the next step: `hidden = hidden.detach()` (for an LSTM: "
            "`hidden = tuple(h.detach() for h in hidden)`), then drop `retain_graph=True`."
        ),
        seen_by="flight",
    )


def _when(walk: GraphPoint) -> str:
    if walk.call - walk.step in (0, 1):
        return f"step {walk.step:,}"
    return f"call {walk.call:,} of backward (step {walk.step:,})"


RULE = Rule(
    "graph-grows-every-step",
    "loop",
    decide,
    explains=frozenset({"step-time-grows", "memory-leak-in-loop"}),
    gathers=True,
)
