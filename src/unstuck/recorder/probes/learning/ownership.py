"""Who has which parameter: the optimizers as they were built, and for each parameter how it began and whether it moved.

A few elements of each parameter are kept from the first backward pass on. Nothing of it is written, nothing is called
that belongs to the training.
"""

from __future__ import annotations

import weakref
from types import FrameType, FunctionType
from typing import Any

import torch

from ... import gpu, objects
from ...records import Site
from ...records.learning import BuiltOptimizer, Stray
from . import first_weights, sites, updates
from .naming import Names

BUILT = 16
STATES = 1000
STRAYS, SEEN = 16, 3
"""Strays that are named, and sampled steps after which a parameter in no graph is one."""


class Checks:
    """Looks at the gradients between two steps of an optimizer whose answers come later, from a GPU."""

    def __init__(self, of: Built) -> None:
        self.of = of
        self.awaited, self.clean, self.closed = 0, False, False

    def arrived(self, flags: list[float]) -> None:
        self.awaited -= 1
        self.clean = self.clean or not any(flags)
        self.settle()

    def settle(self) -> None:
        if self.closed and not self.awaited:
            self.of.tried += 1
            self.of.stale += not self.clean


class Built:
    """One optimizer, from its constructor on."""

    def __init__(self, optimizer: Any, site: Site | None) -> None:
        self.ref = weakref.ref(optimizer)
        self.key = id(optimizer)
        """By which the seam counts; 0 once another one lies there."""
        self.kind = objects.class_name(type(optimizer))
        self.site = site
        self.steps = self.clears = self.stale = self.tried = 0
        self.stepped = self.pending = self.clean = False
        self.checks: Checks | None = None
        self._held: list[weakref.ref[Any]] = []
        self.parameters()

    def parameters(self) -> list[Any]:
        """What it has now; when it is gone, what it had."""
        optimizer = self.ref()
        if optimizer is None:
            return [parameter for ref in self._held if (parameter := ref()) is not None]
        found = updates.parameters_of(optimizer)
        if len(found) != len(self._held):
            self._held = [weakref.ref(parameter) for parameter in found]
        return found

    def step(self) -> None:
        """It stepped: were the gradients of the step before there at every backward pass between the two?"""
        if self.clean:
            self.tried += 1
        elif self.checks is not None:
            self.checks.closed = True
            self.checks.settle()
        elif self.pending:
            self.tried += 1
            self.stale += 1
        self.stepped, self.pending, self.clean, self.checks = True, False, False, None

    def missed(self) -> None:
        self.stepped = self.pending = False
        self.checks = None

    def look(self, copies: gpu.Copies) -> None:
        """Before a backward pass: are there gradients of the step before?"""
        if not self.stepped or self.clean:
            return
        grads = [p.grad for p in self.parameters()[:24] if p.requires_grad]
        held = [grad for grad in grads if grad is not None and not grad.is_sparse and gpu.plain(grad)][:6]
        with torch.no_grad():
            if held and all(gpu.away(grad) for grad in held):
                self.checks = self.checks or Checks(self)
                self.checks.awaited += copies.read([grad.any() for grad in held], self.checks.arrived)
            elif any(bool(grad.any()) for grad in held if gpu.near(grad)):
                self.pending = True
            else:
                self.clean = True


class Ownership:
    """All optimizers built, and how each parameter began."""

    def __init__(self, known: updates.Updates, copies: gpu.Copies) -> None:
        self._updates, self._copies = known, copies
        self.built: list[Built] = []
        self.states: dict[int, first_weights.State] = {}
        self._seen = -1

    def note_built(self, optimizer: Any, frame: FrameType | None) -> Site | None:
        """It was made. Gives the place, above constructors of its own class."""
        for each in self.built:
            if each.key == id(optimizer):
                each.key = 0
        if len(self.built) >= BUILT:
            return None
        written = [objects.class_dict(kind).get("__init__") for kind in objects.mro_of(type(optimizer))]
        codes = [each.__code__ for each in written if type(each) is FunctionType]
        while frame is not None and frame.f_code in codes:
            frame = frame.f_back
        known = Built(optimizer, sites.of(frame))
        self.built.append(known)
        return known.site

    def stepped(self, optimizer: Any) -> Site | None:
        """Gives the place where it was made."""
        known = next((each for each in self.built if each.ref() is optimizer), None)
        if known is None:
            return None
        known.step()
        return known.site

    def missed(self) -> None:
        """A backward pass was not looked at: between these two steps nothing is known."""
        for each in self.built:
            each.missed()

    def at_backward(self) -> None:
        """Before a backward pass that is looked at."""
        self._begin()
        for each in self.built:
            each.look(self._copies)

    def _begin(self) -> None:
        """Note how parameters begin that were not seen before."""
        count = len(self._updates.parameters) + len(self.built)
        if count == self._seen or len(self.states) >= STATES:
            return
        self._seen = count
        fresh = []
        for parameter in self._everything():
            known = self.states.get(id(parameter))
            if (known is None or known.ref() is not parameter) and len(self.states) < STATES:
                state = self.states[id(parameter)] = first_weights.State(parameter, self._copies)
                if gpu.away(parameter):
                    fresh.append(state)
        first_weights.bring(fresh, self._copies)

    def _everything(self) -> list[Any]:
        """Parameters that an optimizer has or a graph ended in."""
        known = {id(p): p for each in self.built for p in each.parameters()}
        for each in self._updates.parameters.values():
            parameter = each.ref()
            if parameter is not None:
                known.setdefault(id(parameter), parameter)
        return list(known.values())

    # --- telling -----------------------------------------------------------------------------------------------------

    def holders(self) -> dict[int, int]:
        """Number of the optimizer, as built, that has a parameter now."""
        held: dict[int, int] = {}
        for number, each in enumerate(self.built):
            for parameter in each.parameters():
                held.setdefault(id(parameter), number)
        return held

    def unowned(self, held: dict[int, int]) -> set[int]:
        """Parameters that a graph ends in and no optimizer has."""
        known = self._updates.parameters.items()
        return {key for key, each in known if each.in_graph and each.owner is None and key not in held}

    def alike(self) -> bool:
        return any(state.alike for state in self.states.values())

    def strays(self, names: Names) -> list[Stray]:
        """Parameters that only an optimizer still has: in no graph, under no name."""
        found = []
        for parameter in [p for each in self.built for p in each.parameters() if names.names and not names.name(p)]:
            known = self._updates.of(parameter)
            if parameter.requires_grad and known is not None and not known.in_graph and known.seen >= SEEN:
                found.append(Stray(shape=known.shape, numel=known.numel))
        return found[:STRAYS]

    def look(self) -> list[dict[str, int]]:
        """Of each optimizer, what is known of its parameters now: at the end of the process they may be gone."""
        found = []
        for each in self.built:
            held = each.parameters()
            reached = [self._updates.parameters.get(id(p)) for p in held]
            about = {
                "parameters": len(held),
                "trainable": sum(1 for p in held if p.requires_grad),
                "in_graph": sum(1 for one in reached if one is not None and one.in_graph),
                "moved": sum(1 for p in held if id(p) in self.states and self.states[id(p)].moved()),
            }
            found.append(about)
        return found

    def count(self, counts: Any) -> None:
        """What the seam counted at every step, as it stands now; also of optimizers that are gone."""
        for each in self.built:
            each.steps = counts.steps.get(each.key, each.steps)
            each.clears = counts.clears.get(each.key, each.clears)

    def records(self, looked: list[dict[str, int]]) -> list[BuiltOptimizer]:
        """`looked`: what `look` gave, when the parameters were last there."""
        return [
            BuiltOptimizer(
                number=number, kind=each.kind, site=each.site, stale=each.stale, checked=each.tried, steps=each.steps,
                clears=each.clears, **about,
            )
            for number, (each, about) in enumerate(zip(self.built, looked, strict=False))
        ]  # fmt: skip
