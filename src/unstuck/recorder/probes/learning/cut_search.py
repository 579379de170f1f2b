"""Where a graph is cut: which module's result goes on without its graph, into which module, and at which line.

Loaded where a parameter that an optimizer has never gets a gradient. The calls of one step that can end a graph are
followed through the interpreter's profiling hook, where nobody uses it.
"""

from __future__ import annotations

import dis
import linecache
import re
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

import torch

from ... import gpu, user_code
from ...records import Site
from ...records.learning import GraphCut
from ..object_walk import ObjectWalk, held_by
from . import naming
from .module_calls import Call, Observation
from .parameters import is_fresh
from .script_lines import site_at

MAX_EVENTS = 60_000  # calls in one step after which it is not followed any further
MAX_FOUND, MAX_CODES = 400, 2000
MAX_ELEMENTS = 1 << 21
MAX_NAMED = 24
MIN_BY_HAND = 5  # observed steps that did not reach them
MAX_TOGETHER, MAX_WALKED, MAX_STEPS_AWAY = 2000, 3000, 3  # of lists of parameters that are looked for
APART = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)
MAX_AFTER = 64  # bytes of code, a call with its caches and what comes next
LINES_BACK = 80  # in which `no_grad` is looked for
FINAL = frozenset(("detach", "detach_", "numpy", "tolist", "item", "__array__"))
"""Calls after which nothing leads back to their tensor."""
LIKELY = frozenset(
    ("argmax", "argmin", "as_tensor", "bernoulli", "ceil", "floor", "from_numpy", "heaviside", "int", "long",
     "multinomial", "round", "sign", "tensor")
)  # fmt: skip
MAKES = frozenset(("as_tensor", "from_numpy", "tensor"))
_OF_TENSORS = frozenset(dir(torch.Tensor))  # once: each listing takes as long as a look at a step
OUT_OF_PLACE = frozenset(name for name in _OF_TENSORS if f"{name}_" in _OF_TENSORS)
"""Operations that give a new tensor, and have a twin that writes into the old one."""
CACHE, PRECALL, THROWN_AWAY = (dis.opmap.get(name, -1) for name in ("CACHE", "PRECALL", "POP_TOP"))
DISABLES = re.compile("no_grad|inference_mode|set_grad_enabled")
ENDS_GRAPH = re.compile(
    r"\.detach_?\(|\.data\b|\.item\(|\.tolist\(|\.numpy\(|\btensor\(|as_tensor\(|from_numpy\("
    r"|argmax\(|\bsign\(|\bround\(|multinomial\(|\.long\(|\.sample\("
)


class Fingerprint:
    """Enough of a tensor to know its values again, also when they were copied or reshaped."""

    __slots__ = ("graph", "numel", "shape", "size", "sum")

    def __init__(self, tensor: Any) -> None:
        value = tensor.detach()
        self.graph = bool(tensor.requires_grad)
        self.shape = tuple(int(size) for size in value.shape)
        self.numel = int(value.numel())
        small = 0 < self.numel <= MAX_ELEMENTS and not value.is_sparse and gpu.plain(tensor)
        self.sum = float(value.double().sum()) if small else float("nan")
        self.size = float(value.double().abs().sum()) if small else float("nan")

    def same(self, other: Fingerprint) -> bool:
        if self.numel != other.numel or not self.numel > 1 or not self.size > 0:
            return False
        near = 1e-5 * self.size
        return abs(self.sum - other.sum) <= near and abs(self.size - other.size) <= near

    def may_become(self, other: Fingerprint) -> bool:
        """What comes of it by rounding it, or by choosing along its last dimension, has the other's shape."""
        return self.shape == other.shape or (len(self.shape) > 1 and self.shape[:-1] == other.shape)


class Event:
    """A call, from a line of the user's, that can end a graph."""

    __slots__ = ("code", "final", "given", "line", "name", "order")

    def __init__(self, name: str, frame: FrameType, order: int, given: Fingerprint | None) -> None:
        self.name, self.code, self.line = name, frame.f_code, frame.f_lineno
        self.order, self.given, self.final = order, given, name in FINAL

    def is_of(self, tensors: list[Fingerprint]) -> bool:
        """It was called on one of these."""
        return self.given is not None and any(self.given.same(tensor) for tensor in tensors)


class Events:
    """Follows the calls of one step."""

    def __init__(self) -> None:
        self.found: list[Event] = []
        self.codes: dict[CodeType, list[int]] = {}
        """The user's functions that ran, with their places in the order of events."""
        self.order = 0
        self.dropped: list[Event] = []  # operations of tensors whose result nobody gets
        self._count = 0
        self._on = False

    def start(self) -> None:
        if sys.getprofile() is None:
            self._on = True
            sys.setprofile(self._follow)

    def stop(self) -> None:
        if self._on and sys.getprofile() == self._follow:
            sys.setprofile(None)
        self._on = False

    def _follow(self, frame: FrameType, event: str, argument: Any) -> None:
        self._count += 1
        if self._count > MAX_EVENTS:
            self.stop()
            return
        try:
            if event == "call":
                code = frame.f_code
                if user_code.is_user_file(code.co_filename) and len(self.codes) < MAX_CODES:
                    self.codes.setdefault(code, []).append(self.order)
            elif event == "c_call":
                name = getattr(argument, "__name__", "")
                if (name in FINAL or name in LIKELY) and user_code.is_user_file(frame.f_code.co_filename):
                    self._note(name, frame, getattr(argument, "__self__", None))
                elif name in OUT_OF_PLACE and is_dropped(frame) and _is_of_torch(name, argument):
                    self.dropped.append(Event(name, frame, self.order, None))
        except Exception:
            self.stop()

    def _note(self, name: str, frame: FrameType, given: Any) -> None:
        if len(self.found) >= MAX_FOUND:
            return
        tensor = Fingerprint(given) if type(given) is torch.Tensor and given.requires_grad else None
        if tensor is not None or name in LIKELY:
            self.found.append(Event(name, frame, self.order, tensor))


def is_dropped(frame: FrameType) -> bool:
    """The result of the call that a frame of the user's is making is thrown away: the call stands by itself."""
    if not user_code.is_user_file(frame.f_code.co_filename):
        return False
    code, calls = frame.f_code.co_code, frame.f_lasti
    steps = [step for step in code[calls : calls + MAX_AFTER : 2] if step != CACHE]
    after = steps[2 if steps[:1] == [PRECALL] else 1 :]  # Python 3.11 makes a call in two
    return after[:1] == [THROWN_AWAY]


def _is_of_torch(name: str, function: Any) -> bool:
    """`x.add`, `torch.add`."""
    of = getattr(function, "__self__", None)
    return type(of) in (torch.Tensor, torch.nn.Parameter) or getattr(torch, name, None) is function


class Span:
    """What happened between two moments of the order of events; `until` below 0: to the end."""

    def __init__(self, events: Events, since: int, until: int) -> None:
        def inside(order: int) -> bool:
            return since <= order and (until < 0 or order <= until)

        self.events = [event for event in events.found if inside(event.order)]
        self.codes = [code for code, orders in events.codes.items() if any(map(inside, orders))]


class Line:
    """The line that ends the graph, and the call there that does it."""

    def __init__(self, op: str = "", site: Site | None = None) -> None:
        self.op, self.site = op, site


class Search:
    """In one observed step. `lost`: parameters that the loss does not reach."""

    def __init__(self, observation: Observation, lost: set[int], names: dict[int, str], times: int) -> None:
        self._observation, self._names, self._lost, self._times = observation, names, lost, times
        self._events = observation.events or Events()
        self._calls = [call for call in observation.forward() if call.left >= 0]
        self._cut_off = [call for call in self._calls if self._lost_in(call)]
        self._first = min((call.came for call in self._cut_off), default=0)
        self._steps = 0

    def _lost_in(self, call: Call) -> set[int]:
        return {id(parameter) for parameter in call.own()} & self._lost

    def find(self) -> GraphCut | None:
        """How the modules with these parameters are parted from the loss; None: they were not called."""
        blind = next((call for call in self._cut_off if not call.grad), None)
        if blind is not None:
            line = _disabled(blind)
            return self._record(blind, "", line, 2 if line.site is not None else 1)
        if not any(call.output_graph for call in self._cut_off):
            return None
        dropped = self.dropped()
        if dropped is not None:
            return dropped
        consumers = self._consumers()
        return self._seen_on_both_sides(consumers) or self._after_the_last(consumers)

    def dropped(self) -> GraphCut | None:
        """A call whose result nobody gets: that of such a module, or of an operation after the last of them."""
        lost = [call for call in self._cut_off if call.output_graph]
        whole = [call for call in self._calls if call.dropped and any(c is call or call.holds(c) for c in lost)]
        if whole:
            return self._record(whole[0], "", Line("", site_at(*whole[0].stack[0])), 2, dropped=True)
        ended, last = self._observation.ended, max((call.left for call in lost), default=0)
        event = next((e for e in self._events.dropped if last <= e.order and (ended < 0 or e.order <= ended)), None)
        if event is None or not lost:
            return None
        return self._record(self._last(), "", Line(event.name, site_at(event.code, event.line)), 2, dropped=True)

    def by_hand(self, steps: int) -> GraphCut | None:
        """Where the script writes its updates out, after so many steps that reached none of these. What they are for is
        not known: only that a result is dropped is a fault, or that the script keeps layers which still have their
        first weights in one list with those that it trains."""
        dropped = self.dropped()
        if dropped is not None or steps < MIN_BY_HAND:
            return dropped
        self._steps = steps
        lost = [p for call in self._cut_off for p in call.own() if id(p) in self._lost]
        cut = self.find() if any(map(is_fresh, lost)) else None
        kept = cut is not None and cut.proven and _keeps_together(self._lost, self._observation.leaves)
        return cut if kept else None

    def _record(self, begins: Call, ends: str, line: Line, proven: int, *, dropped: bool = False) -> GraphCut:
        return GraphCut(
            lost=sorted({call.name(self._names) for call in self._cut_off})[:MAX_NAMED],
            parameters=len({key for call in self._cut_off for key in self._lost_in(call)}),
            training=all(call.training for call in self._cut_off),
            begins=begins.name(self._names),
            ends=ends,
            op=line.op,
            site=line.site,
            proven=proven,
            dropped=dropped,
            step=self._observation.step,
            times=self._times,
            by_hand=self._steps,
        )

    def _consumers(self) -> list[Call]:
        """Calls after the first cut off that were given values without a graph, and are trained."""
        leaves, cut_off = self._observation.leaves, {id(call.module()) for call in self._cut_off}
        found = []
        for call in self._calls:
            if call.came > self._first and call.grad and call.given and not call.input_graph:
                parts = [part for _, part in naming.tree(call.module())]
                trained = any(id(p) in leaves for part in parts for p in naming.own_parameters(part))
                if trained and not any(id(part) in cut_off for part in parts):
                    found.append(call)
        return found

    def _seen_on_both_sides(self, consumers: list[Call]) -> GraphCut | None:
        """From a module whose result has a graph to the first one that is given the same values without it."""
        carriers = [call for call in self._calls if call.output_graph and call.left > self._first and call.gives]
        carriers.sort(key=lambda call: call.left)
        for consumer in consumers:
            before = [call for call in carriers if call.left < consumer.came]
            for carrier in before:
                if any(a.graph and a.same(b) for a in carrier.gives for b in consumer.given):
                    line = self._line(carrier, consumer)
                    return self._record(_outermost(carrier, before), consumer.name(self._names), line, 2)
        return None

    def _after_the_last(self, consumers: list[Call]) -> GraphCut:
        """The values were not seen on both sides: between the last module cut off and the first that is trained."""
        last = self._last()
        if not self._observation.leaves:
            return self._record(last, "the loss", self._line(last, None), 2)
        consumer = next((call for call in consumers if call.came > last.left), None)
        if consumer is None:
            return self._before_the_loss(last)
        line = self._line(last, consumer)
        proven = 0
        between = Span(self._events, last.left, consumer.came - 1).events
        ended = any(event.final and event.is_of(last.gives) for event in between)
        if line.site is not None and line.op and any(a.may_become(b) for a in last.gives for b in consumer.given):
            proven = 2 if ended else 1
        elif ended and line.site is not None and self._rebuilt(between, last, consumer):
            proven = 2
        return self._record(last, consumer.name(self._names), line, proven)

    def _before_the_loss(self, last: Call) -> GraphCut:
        """No module is given what comes of the last one. Where the loss reaches no matrix at all, only a scale or the
        like, all that the model computes is lost on the way."""
        leaves = self._observation.leaves
        reached = {id(p): p for call in self._calls for p in call.own() if id(p) in leaves}
        if len(reached) < len(leaves) or any(p.dim() > 1 for p in reached.values()):
            return self._record(last, "", Line(), 0)
        around = [call for call in self._calls if call.holds(last)]
        cut_off = [call for call in around if leaves.isdisjoint(map(id, naming.all_parameters(call.module())))]
        begins = max(cut_off, key=lambda call: call.left, default=last)
        line = self._line(begins, None)
        return self._record(begins, "the loss", line, int(line.site is not None))

    def _rebuilt(self, between: list[Event], last: Call, consumer: Call) -> bool:
        """Its values left torch, and a new tensor with as many rows was made of other values before the next module."""
        rows = {tensor.shape[:1] for tensor in last.gives}
        return any(event.name in MAKES for event in between) and any(b.shape[:1] in rows for b in consumer.given)

    def _last(self) -> Call:
        """The last of those cut off to end; not one that the rest of the model, which is trained, lies within."""
        leaves = self._observation.leaves
        trained = [call for call in self._calls if any(id(p) in leaves for p in call.own())]
        apart = [call for call in self._cut_off if not any(call.holds(inner) for inner in trained)]
        return max(apart or self._cut_off, key=lambda call: call.left)

    def _line(self, carrier: Call, consumer: Call | None) -> Line:
        """The line between the two that ends the graph; with no consumer, before the loss."""
        until = consumer.came if consumer is not None else self._observation.ended
        span = Span(self._events, carrier.left, until)
        event = _ending(span.events, carrier.gives, last=consumer is None)
        codes = span.codes if consumer is not None else [*span.codes, *(code for code, _ in carrier.stack[:2])]
        line = in_source(codes, consumer) if event is None else None
        if line is not None:
            return line
        event = event or next(iter(([e for e in span.events if e.given is not None] or span.events)[-1:]), None)
        if event is not None:
            return Line(event.name, site_at(event.code, event.line))
        return Line("", site_at(*consumer.stack[0])) if consumer is not None and consumer.stack else Line()


def _keeps_together(lost: set[int], reached: set[int]) -> bool:
    """A list or dict of the script, or of an object there that is no module, has parameters of both."""

    def inside(thing: Any) -> Iterator[tuple[str, Any]]:
        return held_by(thing, naming.MAX_INSIDE) if not issubclass(type(thing), APART) else iter(())

    walk = ObjectWalk(inside, MAX_WALKED, MAX_STEPS_AWAY, skip=naming.PLAIN)
    for _, thing in walk.over(naming.named_in_frames(sys._getframe())):
        if type(thing) in (list, tuple, dict):
            held = [part for _, part in held_by(thing, MAX_TOGETHER)]
            keys = {id(part) for each in held for part in (each if type(each) is tuple else (each,))}
            if keys & lost and keys & reached:
                return True
    return False


def _ending(events: list[Event], gives: list[Fingerprint], *, last: bool) -> Event | None:
    """The call that ends the graph of what a module gives: before the loss the last one, else the first."""
    same = [event for event in events if event.is_of(gives)]
    final = [event for event in events if event.final]
    if last:
        return next(reversed(final or same), None)
    return next(iter([event for event in same if event.final] or same or final), None)


def in_source(codes: list[CodeType], consumer: Call | None) -> Line | None:
    """What no call shows (`.data`): looked for in the source of the functions that ran between the two."""
    places = [(code, max((n for *_, n in code.co_lines() if n), default=code.co_firstlineno)) for code in codes]
    places += consumer.stack[:2] if consumer is not None else []
    for code, line in places:
        number, word = _back_to(ENDS_GRAPH, code, line, code.co_firstlineno)
        if word:
            return Line(word.strip(".("), site_at(code, number))
    return None


def _disabled(call: Call) -> Line:
    """It was called while no graph was recorded: the line of the nearest frame above that says so."""
    for code, line in call.stack:
        number, word = _back_to(DISABLES, code, line, max(code.co_firstlineno, line - LINES_BACK))
        if word:
            return Line(word, site_at(code, number))
    return Line("no_grad", site_at(*call.stack[0]) if call.stack else None)


def _back_to(pattern: re.Pattern[str], code: CodeType, line: int, first: int) -> tuple[int, str]:
    """Back from a line: the nearest one that reads like this, and what of it does; an empty text if none does."""
    for number in range(line, first - 1, -1):
        match = pattern.search(linecache.getline(code.co_filename, number).partition("#")[0])
        if match is not None:
            return number, match.group()
    return 0, ""


def _outermost(carrier: Call, before: list[Call]) -> Call:
    """The last call that ended with the very same result: the encoder rather than its last layer."""
    same = [c for c in before if c.left >= carrier.left and any(a.same(b) for a in c.gives for b in carrier.gives)]
    return max(same, key=lambda call: call.left, default=carrier)
