"""What is seen of one observed step: each call of a module, in its order among all that happens."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Any

from ... import flight, objects
from . import layers
from .graph_events import Events, Print


class Call:
    """One call of one module."""

    __slots__ = (
        "came", "given", "gives", "grad", "input_graph", "left", "module", "outermost", "output_graph", "raw", "stack",
        "training",
    )  # fmt: skip

    def __init__(self, module: Any, outermost: Any, came: int, grad: bool) -> None:
        self.module, self.outermost = weakref.ref(module), weakref.ref(outermost)
        self.came, self.left = came, -1
        self.grad = grad
        """Graphs are recorded."""
        self.training = layers.is_training(module)
        self.input_graph = self.output_graph = False
        self.given: list[Print] = []
        self.gives: list[Print] = []
        self.stack: list[tuple[CodeType, int]] = []
        """The user's frames, innermost first."""
        self.raw: Any = None
        """Of a layer that is given data as it came: how large and how uneven that is."""

    def own(self) -> list[Any]:
        """Parameters of the module itself."""
        module = self.module()
        return layers.own(module) if module is not None else []

    def name(self, names: dict[int, str]) -> str:
        module = self.module()
        return names.get(id(module)) or objects.class_name(type(module))

    def holds(self, other: Call) -> bool:
        """The other was made and ended within it."""
        return self.came < other.came and other.left < self.left


class Observation:
    """What is seen until the next optimizer step."""

    def __init__(self, deep: bool) -> None:
        self.calls: list[Call] = []
        self.open: list[Call] = []
        self.leaves: set[int] = set()
        self.backwards = 0
        self.whole = True
        self.missed = False
        """A backward pass was not looked at."""
        self.raw = 0
        """Layers of which it was looked at what they are given."""
        self.graphless = False
        """A layer gave something without a graph: what comes without one after it may be made of that."""
        self.ended = -1
        """Where in the order of events the first backward pass came."""
        self.deep = deep
        self.events = Events()
        self.step = flight.steps()
        self.order = 0

    def next(self) -> int:
        self.order += 1
        self.events.order = self.order
        return self.order

    def forward(self) -> list[Call]:
        """Calls that ended, of modules that are still there, before the first backward pass."""
        calls = [call for call in self.calls if call.module() is not None and call.left >= 0]
        return [call for call in calls if self.ended < 0 or call.came < self.ended]
