"""Where a graph is cut: which module's result goes on without its graph, into which module, and at which line."""

from __future__ import annotations

import linecache
import re
from types import CodeType
from typing import Any

from ...records import Site
from ...records.learning import GraphCut
from . import layers, sites
from .calls import Call, Observation
from .graph_events import Print

DISABLES = ("no_grad", "inference_mode", "set_grad_enabled")
BACK = 80
WRITTEN = re.compile(
    r"\.detach_?\(|\.data\b|\.item\(|\.tolist\(|\.numpy\(|\btensor\(|as_tensor\(|from_numpy\("
    r"|argmax\(|\bsign\(|\bround\(|multinomial\(|\.long\(|\.sample\("
)
NAMED = 24


class Line:
    """The line that ends the graph, and the call there that does it."""

    def __init__(self, op: str = "", site: Site | None = None) -> None:
        self.op, self.site = op, site


class Cut:
    """The search in one observed step. `lost`: parameters that the loss does not reach."""

    def __init__(self, observation: Observation, lost: set[int], names: dict[int, str], times: int = 1) -> None:
        self._observation, self._names, self._lost, self._times = observation, names, lost, times
        self._calls = observation.forward()
        self._cut_off = [call for call in self._calls if self._lost_in(call)]

    def _lost_in(self, call: Call) -> set[int]:
        return {id(parameter) for parameter in call.own()} & self._lost

    def find(self) -> GraphCut | None:
        """How the modules with these parameters are parted from the loss; None: they were not called."""
        if not self._cut_off:
            return None
        blind = next((call for call in self._cut_off if not call.grad), None)
        if blind is not None:
            line = _disabled(blind)
            return self._record(blind, "", line, 2 if line.site is not None else 1)
        if not any(call.output_graph for call in self._cut_off):
            return None
        return self._known_again() or self._after_the_last()

    def _record(self, begins: Call, ends: str, line: Line, proven: int) -> GraphCut:
        lost = {call.name(self._names) for call in self._cut_off}
        return GraphCut(
            lost=sorted(lost)[:NAMED],
            parameters=len({key for call in self._cut_off for key in self._lost_in(call)}),
            training=all(call.training for call in self._cut_off),
            begins=begins.name(self._names),
            ends=ends,
            op=line.op,
            site=line.site,
            proven=proven,
            step=self._observation.step,
            times=self._times,
        )

    def _consumers(self) -> list[Call]:
        """Calls after the first cut off that were given values without a graph, and are trained."""
        first = min(call.came for call in self._cut_off)
        inside = {id(call.module()) for call in self._cut_off}
        found = [
            call for call in self._calls if call.came > first and not call.input_graph and call.given and call.grad
        ]
        return [call for call in found if self._trained(call) and not _has_any(call.module(), inside)]

    def _known_again(self) -> GraphCut | None:
        """From a module whose result has a graph to the first one that is given the same values without it."""
        first = min(call.came for call in self._cut_off)
        carriers = [call for call in self._calls if call.output_graph and call.left > first and call.gives]
        for consumer in self._consumers():
            before = [call for call in carriers if call.left < consumer.came]
            for carrier in sorted(before, key=lambda call: call.left):
                if any(a.graph and a.same(b) for a in carrier.gives for b in consumer.given):
                    line = self._line(carrier.left, consumer, carrier.gives)
                    return self._record(_outermost(carrier, before), consumer.name(self._names), line, 2)
        return None

    def _after_the_last(self) -> GraphCut:
        """The values were not seen on both sides: between the last module cut off and the first that is trained."""
        last = self._last()
        if not self._observation.leaves:
            return self._record(last, "the loss", self._line(last.left, None, last.gives), 2)
        consumer = next((call for call in self._consumers() if call.came > last.left), None)
        if consumer is None:
            return self._record(last, "", Line(), 0)
        line = self._line(last.left, consumer, last.gives)
        proven = 0
        if (
            line.site is not None
            and line.op
            and any(_alike(a.shape, b.shape) for a in last.gives for b in consumer.given)
        ):
            between = self._observation.events.between(last.left, consumer.came - 1)
            proven = 2 if any(event.sure and event.is_of(last.gives) for event in between) else 1
        return self._record(last, consumer.name(self._names), line, proven)

    def _last(self) -> Call:
        """The last of those cut off to end; not one that the rest of the model, which is trained, lies within."""
        leaves = self._observation.leaves
        trained = [call for call in self._calls if any(id(p) in leaves for p in call.own())]
        apart = [call for call in self._cut_off if not any(call.holds(one) for one in trained)]
        return max(apart or self._cut_off, key=lambda call: call.left)

    def _trained(self, call: Call) -> bool:
        return any(id(p) in self._observation.leaves for p in layers.parameters(call.module()))

    def _line(self, since: int, consumer: Call | None, given: list[Print]) -> Line:
        """The line between the two that ends the graph."""
        until = consumer.came if consumer is not None else self._observation.ended
        between = self._observation.events.between(since, until)
        same = [event for event in between if event.is_of(given)]
        sure = [event for event in between if event.sure]
        if consumer is None:
            chosen = (sure or same)[-1:]
        else:
            chosen = ([event for event in same if event.sure] or same or sure)[:1]
        written = self._written(since, until, consumer) if not chosen else None
        if written is not None:
            return written
        for event in chosen or ([e for e in between if e.given is not None] or between)[-1:]:
            return Line(event.name, sites.at(event.where, event.line))
        if consumer is not None and consumer.stack:
            return Line("", sites.at(*consumer.stack[0]))
        return Line()

    def _written(self, since: int, until: int, consumer: Call | None) -> Line | None:
        """What no call shows (`.data`): looked for in the source of the functions that ran between the two."""
        places = [(code, _last_line(code)) for code in self._observation.events.ran_between(since, until)]
        places += consumer.stack[:2] if consumer is not None else []
        for code, last in places:
            for number in range(last, code.co_firstlineno - 1, -1):
                found = WRITTEN.search(linecache.getline(code.co_filename, number).partition("#")[0])
                if found is not None:
                    return Line(found.group().strip(".("), sites.at(code, number))
        return None


def _disabled(call: Call) -> Line:
    """It was called while no graph was recorded: the line of the nearest frame above that says so."""
    for code, line in call.stack:
        for number in range(line, max(code.co_firstlineno, line - BACK) - 1, -1):
            text = linecache.getline(code.co_filename, number).partition("#")[0]
            word = next((word for word in DISABLES if word in text), None)
            if word is not None:
                return Line(word, sites.at(code, number))
    return Line("no_grad", sites.at(*call.stack[0]) if call.stack else None)


def _outermost(carrier: Call, before: list[Call]) -> Call:
    """The last call that ended with the very same result: the encoder rather than its last layer."""
    same = [c for c in before if c.left >= carrier.left and any(a.same(b) for a in c.gives for b in carrier.gives)]
    return max(same, key=lambda call: call.left, default=carrier)


def _alike(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """What comes of the one by rounding it, or by choosing along its last dimension, has the other's shape."""
    return one == other or (len(one) > 1 and one[:-1] == other)


def _has_any(module: Any, modules: set[int]) -> bool:
    return any(id(part) in modules for _, part in layers.tree(module))


def _last_line(code: CodeType) -> int:
    return max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)
