"""A layer that is called many times in a step, each time with what came of its last call but without the graph.

Of such calls the loss reaches the last one alone. Whether that may be is seen from the graph: how many of the
calls it has. Then one step is looked at more closely: that it is the same values.
"""

from __future__ import annotations

from itertools import islice, pairwise
from typing import Any

from ...records.learning import StateCut
from . import cut_search, graph_reading
from .cut_search import Span
from .module_calls import Call, Observation
from .script_lines import site_at

MIN_CALLS = 4
MIN_SHARE = 3  # of so many calls at most one is in the graph of the loss


def unused_calls(observation: Observation, root: Any) -> list[list[Call]]:
    """By layer, its calls in this step, of which the graph of the loss has the last, and few others."""
    forward = observation.forward()
    learns = [call for call in forward if any(p.requires_grad for p in call.own())]
    by_module: dict[int, list[Call]] = {}
    for call in forward:
        if call.grad and call.made and call.left >= 0:
            by_module.setdefault(id(call.module()), []).append(call)
    many = [calls for calls in by_module.values() if len(calls) >= MIN_CALLS]
    many = [calls for calls in many if any(calls[-1] is call or calls[-1].holds(call) for call in learns)]
    if not many:
        return []
    in_graph = {n._sequence_nr() for n in islice(graph_reading.nodes([root], {root}), graph_reading.MAX_NODES)}

    def only_last(calls: list[Call]) -> bool:
        used = [not in_graph.isdisjoint(call.made) for call in calls]
        return used[-1] and sum(used) * MIN_SHARE <= len(used)

    return [calls for calls in many if only_last(calls)]


def find(observation: Observation, names: dict[int, str]) -> StateCut | None:
    """Almost each of the calls of a layer was given, without a graph, what had one after the call before."""
    events = observation.events
    if events is None:
        return None
    found = (_of_layer(observation.step, events, calls, names) for calls in observation.unused)
    return next((cut for cut in found if cut is not None), None)


def _of_layer(step: int, events: cut_search.Events, calls: list[Call], names: dict[int, str]) -> StateCut | None:
    linked = [_link(events, before, after) for before, after in pairwise(calls)]
    if linked[-1] is None or sum(link is not None for link in linked) < len(linked) - 1:
        return None
    return StateCut(layer=calls[-1].name(names), calls=len(calls), op=linked[-1].op, site=linked[-1].site, step=step)


def _link(events: cut_search.Events, before: Call, after: Call) -> cut_search.Line | None:
    plain = [tensor for tensor in after.given if not tensor.graph]
    span = Span(events, before.left, after.came)
    event = next((e for e in span.events if e.final and e.is_of(plain)), None)
    if event is not None:
        return cut_search.Line(event.name, site_at(event.code, event.line))
    if any(a.graph and a.same(b) for a in before.gives for b in plain):
        return cut_search.in_source(span.codes, after) or cut_search.Line()
    return None
