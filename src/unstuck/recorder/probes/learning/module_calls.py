"""What is seen of one observed step: each call of a module in its order, and how dropouts and batch norms were set."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Any

from ... import flight, gpu, objects
from ...hooks import modules as hooks
from ...records.learning import Mode
from . import naming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cut_search import Events, Fingerprint

MAX_ROOTS = 8
MAX_MODES = 24
MAX_CHANNELS = 1024  # of a norm's statistics that are looked at


class Call:
    """One call of one module."""

    __slots__ = (
        "came", "dropped", "given", "gives", "grad", "input_graph", "left", "made", "module", "outermost",
        "output_graph", "raw", "stack", "training",
    )  # fmt: skip

    def __init__(self, module: Any, outermost: Any, came: int, grad: bool) -> None:
        self.module, self.outermost = weakref.ref(module), weakref.ref(outermost)
        self.came, self.left = came, -1
        self.grad = grad  # graphs are recorded
        self.training = naming.is_training(module)
        self.input_graph = self.output_graph = False
        self.made: list[int] = []  # numbers of the nodes that gave its results
        self.given: list[Fingerprint] = []
        self.gives: list[Fingerprint] = []
        self.stack: list[tuple[CodeType, int]] = []  # the user's frames, innermost first
        self.dropped = False  # nobody gets its result
        self.raw: Any = None  # of a layer that is given data as it came: how large and how uneven that is

    def own(self) -> list[Any]:
        """Parameters of the module itself."""
        module = self.module()
        return naming.own_parameters(module) if module is not None else []

    def name(self, names: dict[int, str]) -> str:
        module = self.module()
        return names.get(id(module)) or objects.class_name(type(module))

    def holds(self, other: Call) -> bool:
        """The other was made and ended within it."""
        return self.came < other.came and other.left < self.left


class Observation:
    """What is seen until the next optimizer step."""

    def __init__(self) -> None:
        self.events: Events | None = None  # calls that can end a graph, where it is looked at closely
        self.calls: list[Call] = []
        self.open: list[Call] = []
        self.unused: list[list[Call]] = []  # by layer, where the loss reaches the last one and few others
        self.leaves: set[int] = set()  # parameters that the graphs of its losses end in
        self.backwards = 0
        self.whole = True
        self.missed = False  # a backward pass was not looked at
        self.raw = 0  # layers of which it was looked at what they are given
        self.graphless = False
        """A layer gave something without a graph: what comes without one after it may be made of that."""
        self.ended = -1  # where in the order of events the first backward pass came
        self.step = flight.steps()
        self._order = 0

    def next(self) -> int:
        self._order += 1
        if self.events is not None:
            self.events.order = self._order
        return self._order

    def forward(self) -> list[Call]:
        """Calls before the first backward pass, of modules that are still there."""
        return [c for c in self.calls if c.module() is not None and (self.ended < 0 or c.came < self.ended)]


class Modes:
    """How the dropouts and batch norms of each trained module were set."""

    def __init__(self, copies: gpu.Copies) -> None:
        self._copies = copies
        self.by_root: dict[str, list[Mode]] = {}
        self._updated: dict[int, bool] = {}  # whether the statistics of a norm on a GPU were, by its module

    @property
    def idle(self) -> bool:
        """A module was last seen in eval mode, or its norms were, and never in another."""
        return any(not history[-1].training or history[-1].never_updated for history in self.by_root.values())

    def note(self, observation: Observation, names: dict[int, str]) -> None:
        last = {id(call.module()): call for call in observation.forward() if call.grad}
        roots: dict[int, tuple[Any, list[Call]]] = {}
        for call in last.values():
            outermost = call.outermost()
            if outermost is not None and hooks.regularizes(call.module()):
                roots.setdefault(id(outermost), (outermost, []))[1].append(call)
        for root, calls in roots.values():
            own = naming.all_parameters(root)
            if any(parameter.requires_grad and id(parameter) in observation.leaves for parameter in own):
                outer = last.get(id(root))
                training = outer.training if outer is not None else naming.is_training(root)
                name = names.get(id(root)) or objects.class_name(type(root))
                self._add(name, self._mode(own, calls, training, observation.step))

    def _mode(self, own: list[Any], calls: list[Call], training: bool, step: int) -> Mode:
        idle = [call for call in calls if not call.training]
        return Mode(
            step=step,
            training=training,
            idle=len(idle),
            of=len(calls),
            never_updated=sum(1 for call in idle if call.output_graph and self._never_updated(call.module())),
            kinds=sorted({objects.class_name(type(call.module())) for call in idle}),
            frozen=sum(1 for parameter in own if not parameter.requires_grad),
        )

    def _add(self, name: str, mode: Mode) -> None:
        if name in self.by_root or len(self.by_root) < MAX_ROOTS:
            history = self.by_root.setdefault(name, [])
            history.append(mode)
            if len(history) > MAX_MODES:
                del history[8:-8:2]

    def _never_updated(self, module: Any) -> bool:
        """Its statistics are what they are before the first batch: 0 and 1. They came with no checkpoint, either."""
        buffers = naming.table(module, "_buffers")
        mean: Any = buffers.get("running_mean")
        var: Any = buffers.get("running_var")
        if not (gpu.plain(mean) and gpu.plain(var)):
            return False
        updated = [mean.detach()[:MAX_CHANNELS].any(), (var.detach()[:MAX_CHANNELS] != 1).any()]
        if gpu.away(mean):
            self._copies.read(updated, lambda values: self._updated.__setitem__(id(module), any(values)))
            return self._updated.get(id(module)) is False
        return gpu.near(mean) and not any(map(bool, updated))
