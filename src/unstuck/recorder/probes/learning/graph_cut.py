"""Where a graph is cut: which module's result goes on without its graph, into which module, and at which line."""

from __future__ import annotations

import sys

from ... import gpu, user_code
from . import layers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

EVENTS = 60_000
"""Calls in one step after which it is not followed any further."""
ELEMENTS = 1 << 21
SURE = frozenset(("detach", "detach_", "numpy", "tolist", "item", "__array__"))
"""Calls after which nothing leads back to their tensor."""
LIKELY = frozenset(("argmax", "argmin", "as_tensor", "bernoulli", "ceil", "floor", "from_numpy", "heaviside", "int"))
LIKELY |= {"long", "multinomial", "round", "sign", "tensor"}
DISABLES = ("no_grad", "inference_mode", "set_grad_enabled")
WRITTEN = (
    r"\.detach_?\(|\.data\b|\.item\(|\.tolist\(|\.numpy\(|\btensor\(|as_tensor\(|from_numpy\("
    r"|argmax\(|\bsign\(|\bround\(|multinomial\(|\.long\(|\.sample\("
)


class Print:
    """Enough of a tensor to know its values again, also when they were copied or reshaped."""

    __slots__ = ("graph", "numel", "shape", "size", "sum")

    def __init__(self, tensor: Any) -> None:
        value = tensor.detach()
        self.graph = bool(tensor.requires_grad)
        self.shape = tuple(int(size) for size in value.shape)
        self.numel = int(value.numel())
        small = 0 < self.numel <= ELEMENTS and not value.is_sparse and gpu.plain(tensor)
        self.sum = float(value.double().sum()) if small else float("nan")
        self.size = float(value.double().abs().sum()) if small else float("nan")

    def same(self, other: Print) -> bool:
        if self.numel != other.numel or not self.numel > 1 or not self.size > 0:
            return False
        near = 1e-5 * self.size
        return abs(self.sum - other.sum) <= near and abs(self.size - other.size) <= near


class Event:
    """A call, from a line of the user's, that can end a graph."""

    __slots__ = ("given", "line", "name", "order", "where")

    def __init__(self, name: str, where: CodeType, line: int, order: int, given: Print | None) -> None:
        self.name, self.where, self.line, self.order, self.given = name, where, line, order, given


class Events:
    """Follows the calls of one step."""

    def __init__(self) -> None:
        self.found: list[Event] = []
        self.codes: dict[CodeType, list[int]] = {}
        """The user's functions that ran, with their places in the order of events."""
        self.order = 0
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
        if self._count > EVENTS:
            self.stop()
            return
        try:
            if event == "call":
                code = frame.f_code
                if user_code.is_user_file(code.co_filename) and len(self.codes) < 2000:
                    self.codes.setdefault(code, []).append(self.order)
            elif event == "c_call":
                name = getattr(argument, "__name__", "")
                if (name in SURE or name in LIKELY) and user_code.is_user_file(frame.f_code.co_filename):
                    self._note(name, frame, getattr(argument, "__self__", None))
        except Exception:
            self.stop()

    def _note(self, name: str, frame: FrameType, given: Any) -> None:
        if len(self.found) >= 400:
            return
        torch = sys.modules["torch"]
        printed = Print(given) if type(given) is torch.Tensor and given.requires_grad else None
        if printed is None and name not in LIKELY:
            return
        self.found.append(Event(name, frame.f_code, frame.f_lineno, self.order, printed))


def tensors(value: Any, depth: int = 0, whole: bool = False) -> list[Any]:
    """Floating-point tensors in the arguments or the result of a module; `whole`: also of whole numbers."""
    torch = sys.modules["torch"]
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        wanted = kind in (torch.Tensor, torch.nn.Parameter) and (whole or value.is_floating_point())
        return [value] if wanted and not value.is_complex() else []
    if depth > 2:
        return []
    if issubclass(kind, dict):
        inner = list(dict.values(value))[:16]
    elif issubclass(kind, (list, tuple)):
        inner = list(tuple.__iter__(value) if issubclass(kind, tuple) else list.__iter__(value))[:16]
    else:
        return []
    return [found for each in inner for found in tensors(each, depth + 1, whole)]


def stack(frame: FrameType | None) -> list[tuple[CodeType, int]]:
    """The user's frames, innermost first."""
    found: list[tuple[CodeType, int]] = []
    while frame is not None and len(found) < 12:
        if user_code.is_user_file(frame.f_code.co_filename):
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return found


def find(observation: Any, lost: set[int], names: dict[int, str]) -> dict[str, Any] | None:
    """How the modules with the `lost` parameters are parted from the loss; None: they were not called."""
    calls = [call for call in observation.calls if call.module() is not None and call.left >= 0]
    if observation.ended >= 0:
        calls = [call for call in calls if call.came < observation.ended]
    own = {id(call): {id(p) for p in layers.own(call.module())} for call in calls}
    cut_off = [call for call in calls if own[id(call)] & lost]
    if not cut_off:
        return None
    last = _last(cut_off, calls, observation.leaves)
    told = {
        "lost": sorted({names.get(id(call.module()), type(call.module()).__name__) for call in cut_off})[:24],
        "parameters": len({key for call in cut_off for key in own[id(call)] & lost}),
        "training": all(call.training for call in cut_off),
        "everything": not observation.leaves,
        "from": _name(last, names),
        "to": "",
        "op": "",
        "site": None,
        "proven": 0,
    }
    blind = [call for call in cut_off if not call.grad]
    if blind:
        return {**told, **_disabled(blind[0], names), "from": _name(blind[0], names)}
    if not any(call.output_graph for call in cut_off):
        return None
    return {**told, **_detached(observation, calls, cut_off, own, names)}


def _name(call: Any, names: dict[int, str]) -> str:
    module = call.module()
    return names.get(id(module)) or type(module).__name__


def _disabled(call: Any, names: dict[int, str]) -> dict[str, Any]:
    """It was called while no graph was recorded: the line of the nearest frame above that says so."""
    import linecache

    for code, line in call.stack:
        for number in range(line, max(code.co_firstlineno, line - 80) - 1, -1):
            text = linecache.getline(code.co_filename, number).partition("#")[0]
            for word in DISABLES:
                if word in text:
                    site = [user_code.absolute(code.co_filename), number, user_code.name_of(code)]
                    return {"op": word, "site": site, "proven": 2}
    first = call.stack[0] if call.stack else None
    if first is None:
        return {"op": "no_grad", "site": None, "proven": 1}
    site = [user_code.absolute(first[0].co_filename), first[1], user_code.name_of(first[0])]
    return {"op": "no_grad", "site": site, "proven": 2}


def _detached(
    observation: Any, calls: list[Any], cut_off: list[Any], own: Any, names: dict[int, str]
) -> dict[str, Any]:
    """From the last module whose result has a graph to the first one that is given the same values without it."""
    first = min(call.came for call in cut_off)
    inside = {id(call.module()) for call in cut_off}
    carriers = [call for call in calls if call.output_graph and call.left > first and call.gives]
    kept = [call for call in calls if call.came > first and not call.input_graph and call.given and call.grad]
    kept = [call for call in kept if _trained(call, observation.leaves) and not _holds(call, inside)]
    for consumer in kept:
        before = [call for call in carriers if call.left < consumer.came]
        for carrier in sorted(before, key=lambda call: call.left):
            if any(a.graph and a.same(b) for a in carrier.gives for b in consumer.given):
                where = _line(observation, carrier.left, consumer, carrier.gives)
                return {
                    "from": _name(_outermost(carrier, before), names),
                    "to": _name(consumer, names),
                    "proven": 2,
                    **where,
                }
    last = _last(cut_off, calls, observation.leaves)
    after = [call for call in kept if call.came > last.left]
    if not observation.leaves:
        return {"to": "the loss", "proven": 2, **_line(observation, last.left, None, last.gives)}
    if after:
        where = _line(observation, last.left, after[0], last.gives)
        alike = any(_alike(a.shape, b.shape) for a in last.gives for b in after[0].given)
        exact = any(_known(e, last) for e in observation.events.found if e.name in SURE and e.order < after[0].came)
        proven = (2 if exact else 1) if where["site"] and where["op"] and alike else 0
        return {"to": _name(after[0], names), "proven": proven, **where}
    return {}


def _last(cut_off: list[Any], calls: list[Any], leaves: set[int]) -> Any:
    """The last of those cut off to end; not one that the rest of the model, which is trained, lies within."""
    trained = [call for call in calls if any(id(p) in leaves for p in layers.own(call.module()))]
    apart = [call for call in cut_off if not any(call.came < one.came and one.left < call.left for one in trained)]
    return max(apart or cut_off, key=lambda call: call.left)


def _known(event: Event, call: Any) -> bool:
    """It was called on the very result of that module."""
    return event.given is not None and event.order >= call.left and any(event.given.same(each) for each in call.gives)


def _outermost(carrier: Any, before: list[Any]) -> Any:
    """The last call that ended with the very same result: the encoder rather than its last layer."""
    same = [c for c in before if c.left >= carrier.left and any(a.same(b) for a in c.gives for b in carrier.gives)]
    return max(same, key=lambda call: call.left, default=carrier)


def _alike(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """What comes of the one by rounding it, or by choosing along its last dimension, has the other's shape."""
    return one == other or (len(one) > 1 and one[:-1] == other)


def _trained(call: Any, leaves: set[int]) -> bool:
    return any(id(p) in leaves for part in layers.tree(call.module()) for p in layers.own(part))


def _holds(call: Any, modules: set[int]) -> bool:
    return any(id(part) in modules for part in layers.tree(call.module()))


def _line(observation: Any, since: int, consumer: Any, given: list[Print]) -> dict[str, Any]:
    """The line between the two that ends the graph."""
    until = consumer.came if consumer is not None else observation.ended
    between = [e for e in observation.events.found if since <= e.order and (until < 0 or e.order <= until)]
    same = [e for e in between if e.given is not None and any(e.given.same(each) for each in given)]
    sure = [e for e in between if e.name in SURE]
    chosen = [e for e in same if e.name in SURE] or same or sure
    if consumer is None:
        chosen = sure or same
    if chosen:
        return _at(chosen[0] if consumer is not None else chosen[-1])
    written = _written(observation, since, until, consumer)
    if written is not None:
        return written
    likely = [e for e in between if e.given is not None] or between
    if likely:
        return _at(likely[-1])
    if consumer is not None and consumer.stack:
        code, line = consumer.stack[0]
        return {"op": "", "site": [user_code.absolute(code.co_filename), line, user_code.name_of(code)]}
    return {"op": "", "site": None}


def _at(event: Event) -> dict[str, Any]:
    site = [user_code.absolute(event.where.co_filename), event.line, user_code.name_of(event.where)]
    return {"op": event.name, "site": site}


def _written(observation: Any, since: int, until: int, consumer: Any) -> dict[str, Any] | None:
    """What no call shows (`.data`): looked for in the source of the functions that ran between the two."""
    import linecache
    import re

    pattern = re.compile(WRITTEN)
    places: list[tuple[Any, int, int]] = []
    for code, orders in observation.events.codes.items():
        if any(since <= order and (until < 0 or order <= until) for order in orders):
            places.append((code, code.co_firstlineno, _last_line(code)))
    for code, line in consumer.stack[:2] if consumer is not None else ():
        places.append((code, code.co_firstlineno, line))
    for code, first, last in places:
        for number in range(last, first - 1, -1):
            found = pattern.search(linecache.getline(code.co_filename, number).partition("#")[0])
            if found is not None:
                site = [user_code.absolute(code.co_filename), number, user_code.name_of(code)]
                return {"op": found.group().strip(".("), "site": site}
    return None


def _last_line(code: CodeType) -> int:
    return max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)
