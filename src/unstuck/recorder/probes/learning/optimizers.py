"""The optimizers of the training, from their constructors on: what each has, its rates, uncleared gradients.

Nothing of them is called: what is read lies in their own dicts.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any

import torch

from ... import gpu, objects, user_code
from ...records import Site
from ...records import learning as records
from ...records.learning import BuiltOptimizer, Setting, Stray
from .fitted_update import Fit
from .naming import Names
from .parameters import Parameters

MAX_BUILT = 16  # optimizers that are followed from their constructors on
MAX_STEPPING = 64  # of more optimizers only the steps are counted
MAX_RATES = 400
MAX_TENSORS, MAX_ELEMENTS = 160, 4_000_000  # of a larger model its first, last and some middle parameters are read
LOOKED_AT, GRADIENTS = 24, 6  # parameters in which gradients are looked for, and how many of these are read
MAX_STRAYS = 16
STRAY_AFTER = 3  # sampled steps in which a parameter was in no graph
COSINES = 48
RATE_CHANGE = 0.03  # of a rate that was fitted; less is rounding
NUMBERS = objects.ids(bool, int, float)
SETTINGS = ("lr", "initial_lr", "momentum", "weight_decay", "betas", "eps", "nesterov", "maximize")


def groups_of(optimizer: Any) -> list[dict[str, Any]]:
    """Its parameter groups, without asking the optimizer itself: its class may be the user's."""
    found = (objects.instance_dict(optimizer) or {}).get("param_groups")
    return [group for group in found if type(group) is dict] if type(found) is list else []


def parameters_of(optimizer: Any) -> list[Any]:
    lists = [group.get("params") for group in groups_of(optimizer)]
    return [parameter for held in lists if type(held) is list for parameter in held if gpu.plain(parameter)]


class Between:
    """Looks at the gradients between two steps of an optimizer: was each time something left of the step before?

    The answers of a GPU come later, perhaps after the second step."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self.looks = self._answers = 0
        self.cleared = self._closed = False

    def take(self, left: list[float]) -> None:
        """`left`: of some gradients, whether an element of it is not 0."""
        self._answers += 1
        self.cleared = self.cleared or not any(left)
        self._settle()

    def close(self) -> None:
        self._closed = True
        self._settle()

    def _settle(self) -> None:
        if self._closed and self.looks and self._answers == self.looks:
            self._optimizer.checked += 1
            self._optimizer.stale += not self.cleared


class Optimizer:
    """One optimizer; or, with no kind, the updates that the script writes out itself."""

    def __init__(self, optimizer: Any, site: Site | None = None) -> None:
        self.ref: Callable[[], Any] = weakref.ref(optimizer, self._gone) if optimizer is not None else lambda: None
        self.key = id(optimizer)  # by which the hook counts; 0 once another one lies there
        self.kind = objects.class_name(type(optimizer)) if optimizer is not None else ""
        self.site = site
        self.steps = self.clears = self.stale = self.checked = 0
        self.between: Between | None = None
        self.lrs: list[tuple[int, float]] = []
        self.settings: dict[str, Setting] = {}
        self.cosines: list[float] = []
        self.chosen: list[weakref.ref[Any]] = []  # parameters that are read at its steps
        self.last_move: Any = None  # all its moves of the step before, one after another
        self.last_at = 0
        self.unmoved: Any = None  # all its weights at the last step that was followed, if that moved none
        self._held: list[weakref.ref[Any]] = []
        self._looked: dict[str, int] = {}

    def _gone(self, _: Any) -> None:
        """Nothing of a training that is over is kept alive."""
        self.chosen, self.last_move, self.unmoved = [], None, None

    def parameters(self) -> list[Any]:
        """What it has now; when it is gone, what it had."""
        optimizer = self.ref()
        if optimizer is None:
            return [parameter for ref in self._held if (parameter := ref()) is not None]
        found = parameters_of(optimizer)
        if len(found) != len(self._held):
            self._held = [weakref.ref(parameter) for parameter in found]
        return found

    def choose(self, parameters: list[Any]) -> None:
        """All parameters of a small model; of a large one the first and the last, and some between."""
        if len(parameters) > MAX_TENSORS or sum(int(p.numel()) for p in parameters) > MAX_ELEMENTS:
            step = max(1, len(parameters) // 40)
            spread = [*parameters[:20], *parameters[-20:], *parameters[20:-20:step]]
            parameters = within(MAX_ELEMENTS, list({id(parameter): parameter for parameter in spread}.values()))
        self.chosen = [weakref.ref(parameter) for parameter in parameters]

    def note_rate(self, optimizer: Any, step: int) -> None:
        self._note_rate(max((_float(group.get("lr")) for group in groups_of(optimizer)), default=0.0), step)

    def note_fit(self, fit: Fit, step: int) -> None:
        """What an update written by hand did, as if it had been set."""
        rate = float(f"{fit.rate:.3g}")
        if not self.lrs or abs(rate - self.lrs[-1][1]) > RATE_CHANGE * self.lrs[-1][1]:
            self._note_rate(rate, step)
        for name, value in (("momentum", fit.momentum), ("weight_decay", fit.decay)):
            self.settings[name] = float(f"{value:.2g}")

    def note_rate_gone(self, step: int) -> None:
        """An update written by hand moves no weight any more, though its gradients are as large as they were."""
        self._note_rate(0.0, step)

    def _note_rate(self, rate: float, step: int) -> None:
        if not self.lrs or self.lrs[-1][1] != rate:
            self.lrs.append((step, rate))
            if len(self.lrs) > MAX_RATES:
                self.lrs = self.lrs[:100] + self.lrs[100::2]

    def stepped(self) -> None:
        if self.between is not None:
            self.between.close()
        self.between = Between(self)

    def look_for_gradients(self, copies: gpu.Copies) -> None:
        """Before a backward pass: are there gradients of the step before?"""
        between = self.between
        if between is None or between.cleared:
            return
        gradients = [p.grad for p in self.parameters()[:LOOKED_AT] if p.requires_grad]
        held = [grad for grad in gradients if is_dense(grad)][:GRADIENTS]
        with torch.no_grad():
            if held and all(gpu.away(grad) for grad in held):
                between.looks += copies.read([grad.any() for grad in held], between.take)
            else:
                between.looks += 1
                between.take([any(bool(grad.any()) for grad in held if gpu.near(grad))])

    def look(self, parameters: Parameters) -> None:
        """Note what its parameters are like now: at the end of the process they may be gone."""
        held = self.parameters()
        entries = [entry for parameter in held if (entry := parameters.known.get(id(parameter))) is not None]
        self._looked = {
            "parameters": len(held),
            "trainable": sum(1 for parameter in held if parameter.requires_grad),
            "in_graph": sum(1 for entry in entries if entry.in_graph),
            "moved": sum(1 for entry in entries if entry.begun and entry.moved()),
        }

    def record(self, number: int) -> records.Optimizer:
        return records.Optimizer(
            number=number, kind=self.kind, steps=self.steps, lrs=self.lrs, settings=self.settings,
            cosines=self.cosines[-COSINES:], site=self.site, stale=self.stale, checked=self.checked,
        )  # fmt: skip

    def built_record(self, number: int) -> BuiltOptimizer:
        return BuiltOptimizer(
            number=number, kind=self.kind, site=self.site, stale=self.stale, checked=self.checked, steps=self.steps,
            clears=self.clears, **self._looked,
        )  # fmt: skip


class Optimizers:
    """All that were built, and all that step."""

    def __init__(self, parameters: Parameters, copies: gpu.Copies) -> None:
        self._parameters, self._copies = parameters, copies
        self.built: list[Optimizer] = []
        self._stepping: list[Optimizer] = []
        self._by_hand: Optimizer | None = None
        """Stands for the updates that the script writes out itself, while no optimizer steps."""
        self._seen = (-1, -1)

    def note_built(self, optimizer: Any, frame: FrameType | None) -> Site | None:
        """It was made. Returns the place, above constructors of its own class."""
        self._take_key(optimizer)
        if len(self.built) >= MAX_BUILT:
            return None
        constructors = [objects.class_dict(kind).get("__init__") for kind in objects.mro_of(type(optimizer))]
        codes = [function.__code__ for function in constructors if type(function) is FunctionType]
        while frame is not None and frame.f_code in codes:
            frame = frame.f_back
        entry = Optimizer(optimizer, user_code.site_of(frame))
        entry.parameters()
        self.built.append(entry)
        return entry.site

    def _take_key(self, optimizer: Any) -> None:
        """One that is gone may have lain there: its counts are not the new one's."""
        for entry in (*self.built, *self._stepping):
            if entry.key == id(optimizer) and entry.ref() is not optimizer:
                entry.key = 0

    def known(self, optimizer: Any) -> Optimizer:
        """The entry of an optimizer that steps. None: of what is written by hand."""
        if optimizer is None:
            self._by_hand = self._by_hand or Optimizer(None)
            return self._by_hand
        entry = next((entry for entry in self._stepping if entry.ref() is optimizer), None)
        if entry is not None:
            return entry
        entry = next((entry for entry in self.built if entry.ref() is optimizer), None)
        if entry is None:
            self._take_key(optimizer)
            entry = Optimizer(optimizer)
        if len(self._stepping) < MAX_STEPPING:
            self._stepping.append(entry)
            held = entry.parameters()
            self._parameters.own(held, len(self._stepping) - 1)
            entry.choose(held)
            group = next(iter(groups_of(optimizer)), {})
            entry.settings = {name: _setting(group[name]) for name in SETTINGS if name in group}
        return entry

    def stepping(self) -> list[Optimizer]:
        """All that step; where there is none, what stands for the updates made by hand."""
        return self._stepping or [entry for entry in (self._by_hand,) if entry is not None and entry.steps]

    def take_turns(self) -> bool:
        return len(self._stepping) > 1

    def at_backward(self) -> None:
        """Before a backward pass that is looked at."""
        seen = len(self._parameters.known), len(self.built)
        if seen != self._seen:
            self._parameters.begin(parameter for entry in self.built for parameter in entry.parameters())
            self._seen = len(self._parameters.known), len(self.built)
        for entry in self.built:
            entry.look_for_gradients(self._copies)

    def missed(self) -> None:
        """A backward pass was not looked at: between these two steps nothing is known."""
        for entry in self.built:
            entry.between = None

    def holders(self) -> dict[int, int]:
        """Number of the optimizer, as built, that has a parameter now; by the parameter's identity."""
        holders: dict[int, int] = {}
        for number, entry in enumerate(self.built):
            for parameter in entry.parameters():
                holders.setdefault(id(parameter), number)
        return holders

    def strays(self, names: Names) -> list[Stray]:
        """Parameters that only an optimizer still has: in no graph, under no name."""
        found = []
        for parameter in [p for each in self.built for p in each.parameters() if names.names and not names.name(p)]:
            entry = self._parameters.get(parameter)
            if parameter.requires_grad and entry is not None and not entry.in_graph and entry.seen >= STRAY_AFTER:
                found.append(Stray(shape=entry.shape, numel=entry.numel))
        return found[:MAX_STRAYS]

    def count(self, counts: Any) -> None:
        """What the hook counted at every step, as it stands now; also of optimizers that are gone."""
        for entry in (*self.built, *self._stepping):
            entry.steps = counts.steps.get(entry.key, entry.steps)
            entry.clears = counts.clears.get(entry.key, entry.clears)


def is_dense(grad: Any) -> bool:
    return grad is not None and not grad.is_sparse and gpu.plain(grad)


def within(room: int, parameters: list[Any]) -> list[Any]:
    """As many of them as have so many elements together; those that are too large are left out."""
    found = []
    for parameter in parameters:
        if parameter.numel() <= room:
            found.append(parameter)
            room -= int(parameter.numel())
    return found


def _setting(value: Any) -> Setting:
    kind = type(value)
    if kind is tuple or kind is list:
        return [_float(part) for part in value[:8]]
    return value if id(kind) in NUMBERS else _float(value)


def _float(value: Any) -> float:
    """Of a number, also one of numpy's; a tensor's is read where that needs no waiting."""
    kind = type(value)
    if kind is torch.Tensor:
        return float(value) if value.is_cpu and value.numel() == 1 else 0.0
    return float(value) if issubclass(kind, (int, float)) or kind.__module__ == "numpy" else 0.0
