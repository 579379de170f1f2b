"""Calls of one step that can end a graph, followed through the interpreter's profiling seam where nobody uses it."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

import torch

from ... import gpu, user_code

EVENTS = 60_000
"""Calls in one step after which it is not followed any further."""
FOUND, CODES = 400, 2000
ELEMENTS = 1 << 21
INSIDE, DEEP = 16, 2
SURE = frozenset(("detach", "detach_", "numpy", "tolist", "item", "__array__"))
"""Calls after which nothing leads back to their tensor."""
LIKELY = frozenset(
    ("argmax", "argmin", "as_tensor", "bernoulli", "ceil", "floor", "from_numpy", "heaviside", "int", "long",
     "multinomial", "round", "sign", "tensor")
)  # fmt: skip


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

    @property
    def sure(self) -> bool:
        return self.name in SURE

    def is_of(self, prints: list[Print]) -> bool:
        """It was called on one of these."""
        return self.given is not None and any(self.given.same(each) for each in prints)


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

    def between(self, since: int, until: int) -> list[Event]:
        """`until` below 0: to the end."""
        return [event for event in self.found if since <= event.order and (until < 0 or event.order <= until)]

    def ran_between(self, since: int, until: int) -> list[CodeType]:
        return [
            code
            for code, orders in self.codes.items()
            if any(since <= order and (until < 0 or order <= until) for order in orders)
        ]

    def _follow(self, frame: FrameType, event: str, argument: Any) -> None:
        self._count += 1
        if self._count > EVENTS:
            self.stop()
            return
        try:
            if event == "call":
                code = frame.f_code
                if user_code.is_user_file(code.co_filename) and len(self.codes) < CODES:
                    self.codes.setdefault(code, []).append(self.order)
            elif event == "c_call":
                name = getattr(argument, "__name__", "")
                if (name in SURE or name in LIKELY) and user_code.is_user_file(frame.f_code.co_filename):
                    self._note(name, frame, getattr(argument, "__self__", None))
        except Exception:
            self.stop()

    def _note(self, name: str, frame: FrameType, given: Any) -> None:
        if len(self.found) >= FOUND:
            return
        printed = Print(given) if type(given) is torch.Tensor and given.requires_grad else None
        if printed is not None or name in LIKELY:
            self.found.append(Event(name, frame.f_code, frame.f_lineno, self.order, printed))


def tensors(value: Any, depth: int = 0, whole: bool = False) -> list[Any]:
    """Floating-point tensors in the arguments or the result of a module; `whole`: also of whole numbers."""
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        wanted = (kind is torch.Tensor or kind is torch.nn.Parameter) and (whole or value.is_floating_point())
        return [value] if wanted and not value.is_complex() else []
    if depth > DEEP:
        return []
    inner: list[Any] = []
    if issubclass(kind, dict):
        inner = list(dict.values(value))[:INSIDE]
    elif issubclass(kind, tuple):
        inner = list(tuple.__getitem__(value, slice(INSIDE)))
    elif issubclass(kind, list):
        inner = list.__getitem__(value, slice(INSIDE))
    return [found for each in inner for found in tensors(each, depth + 1, whole)]
