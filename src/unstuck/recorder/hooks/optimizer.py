"""Seam: the optimizer's step, through torch's own global hooks, and its constructor. A training step ends here.

The hook before the step is in place only while steps are sampled.
"""

from __future__ import annotations

import sys
from _weakref import ref
from functools import wraps

from .. import dispatch, flight, guard, resting, stepping
from .. import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


OFTEN = 0.5  # clears a step, from which on gradients are cleared as they should be


def nobody() -> None:
    return None


class Counts:
    """By the identity of an optimizer: how often it has stepped, and how often its gradients were cleared.

    The one that leads is known by a weak reference, and its numbers are settled when they are asked for: at an ordinary
    step nothing is looked up, and `id` is not called, which every audit hook hears. Once it is plain that gradients are
    cleared, that is no longer counted but taken to go on."""

    __slots__ = ("_clears", "_counted", "_key", "_since", "_steps", "leader", "led_clears")

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        self._clears: dict[int, int] = {}
        self._counted: dict[int, int] = {}
        """Steps made when counting ended, of those whose gradients were cleared until then."""
        self.leader: Callable[[], Any] = nobody
        self._key = self._since = self.led_clears = 0

    def lead(self, optimizer: Any) -> None:
        """Its present step is the first that is counted so."""
        self._settle()
        self.leader, self._key, self._since = ref(optimizer), id(optimizer), flight.steps()

    def stepped(self, optimizer: Any) -> None:
        self._steps[id(optimizer)] = self._steps.get(id(optimizer), 0) + 1

    def built(self, optimizer: Any) -> None:
        """It may have the place in memory of one that is gone."""
        self._settle()
        for kept in (self._steps, self._clears, self._counted):
            kept.pop(id(optimizer), None)

    def cleared(self, optimizer: Any) -> None:
        if id(optimizer) in self._counted:
            return
        self._clears[id(optimizer)] = self._clears.get(id(optimizer), 0) + 1

    def all_cleared(self) -> bool:
        """Every optimizer that steps is also cleared; if so, counting ends."""
        self._settle()
        if any(self._clears.get(key, 0) < OFTEN * steps for key, steps in self._steps.items()):
            return False
        self._counted = {key: steps for key, steps in self._steps.items() if steps}
        return True

    def _settle(self) -> None:
        if self._key:
            self._steps[self._key] = self._steps.get(self._key, 0) + flight.steps() - self._since
            self._clears[self._key] = self._clears.get(self._key, 0) + self.led_clears
            self._since, self.led_clears = flight.steps(), 0

    @property
    def steps(self) -> dict[int, int]:
        self._settle()
        return self._steps

    @property
    def clears(self) -> dict[int, int]:
        self._settle()
        going_on = {key: self._clears[key] * self._steps[key] // steps for key, steps in self._counted.items()}
        return {**self._clears, **going_on}

    @property
    def all_clears(self) -> int:
        return sum(self.clears.values())


class Sampling:
    """What is done in sampled steps; the hook before a step is in place only then."""

    __slots__ = ("_before", "_counts", "_module")

    def __init__(self, module: Any, counts: Counts) -> None:
        self._module, self._counts = module, counts
        self._before: Any = None
        self.change(True)

    def change(self, sampled: bool) -> None:
        if sampled and self._before is None:
            self._before = self._module.register_optimizer_step_pre_hook(self._steps)
        elif not sampled and self._before is not None:
            self._before.remove()
            self._before = None

    def _steps(self, optimizer: Any, arguments: Any, options: Any) -> None:
        if not sys.modules["torch"].compiler.is_dynamo_compiling():
            guard.attempt("optimizer", self._begin, optimizer, arguments, options)

    @staticmethod
    def _begin(optimizer: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        stepping.by_hand.inside = True
        flight.enter(at.OPTIMIZER)
        if flight.full():
            given = arguments[1] if len(arguments) > 1 else options.get("closure")  # the first is the optimizer itself
            dispatch.emit("before_step", optimizer, given is not None)

    def stepped(self, optimizer: Any, leads: bool) -> None:
        if flight.full():
            dispatch.emit("after_step", optimizer, self._counts.steps.get(id(optimizer), 0))
        stepping.by_hand.inside = False
        if not leads:
            return
        was_full = flight.state[flight.FULL]
        if not was_full and not flight.sample_due():
            resting.again()
            return
        self.turn()
        if flight.steps() >= flight.FULL_STEPS and self._counts.all_cleared():
            guard.remove("zero_grad")
        if was_full and not flight.state[flight.FULL]:
            resting.sampled()

    def turn(self) -> None:
        stepping.turn()
        self.change(bool(flight.state[flight.FULL]))

    def rested(self) -> None:
        """The next step is noted, and if it is time, sampled."""
        resting.end()
        if flight.sample_due():
            self.turn()


def install(module: Any) -> None:
    """`module` is torch.optim.optimizer."""
    torch = sys.modules["torch"]  # still importing: it has no `compiler` yet
    counts, state = Counts(), flight.state
    full, steps, due, left = flight.FULL, flight.STEPS, flight.DUE, flight.LEFT
    leader: Callable[[], Any] = nobody
    rival: Callable[[], Any] = nobody
    sampling = Sampling(module, counts)

    def compiling() -> bool:
        return bool(torch.compiler.is_dynamo_compiling())

    def after(optimizer: Any, arguments: Any, options: Any) -> None:
        """Of several optimizers one leads, so that a round of all is one step; if it rests, another takes its place."""
        nonlocal leader, rival, compiling
        if state[left]:
            if leader() is optimizer:
                state[left] -= 1
                if not state[left]:
                    guard.attempt("optimizer", sampling.rested)
                return
            guard.attempt("optimizer", resting.give_up)
        if compiling():
            return
        if leader() is optimizer:
            rival = nobody
            made = state[steps] = (
                state[steps] + 1
            )  # written into the flight file where a batch is looked at, and by `turn`
            if made >= state[due]:
                compiling = torch.compiler.is_dynamo_compiling  # it is there by now: two lookups less from here on
                guard.attempt("optimizer", sampling.stepped, optimizer, True)
            return
        leads = rival() is optimizer or leader() is None
        if leads:
            if rival() is optimizer:  # its step before was one of the training's too
                stepping.count()
            counts.lead(optimizer)
            leader, rival = counts.leader, nobody
            stepping.count()
        else:
            counts.stepped(optimizer)
            rival = ref(optimizer)
        if leads or state[full]:
            guard.attempt("optimizer", sampling.stepped, optimizer, leads)

    handle = module.register_optimizer_step_post_hook(after)

    def remove() -> None:
        sampling.change(False)
        handle.remove()

    guard.on("optimizer", remove)
    _wrap_built(module.Optimizer, counts)


def _wrap_built(kind: Any, counts: Counts) -> None:
    original = kind.__init__

    @wraps(original)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        try:
            counts.built(self)
            _wrap_cleared(kind, counts)
            dispatch.emit("optimizer_built", self, sys._getframe(1), counts)
        except Exception as fault:
            guard.off("optimizers built", fault)

    kind.__init__ = __init__

    def remove() -> None:
        if kind.__init__ is __init__:
            kind.__init__ = original

    guard.on("optimizers built", remove)


def _wrap_cleared(kind: Any, counts: Counts) -> None:
    """Called at every step, it does nothing but count, and is taken out when that has shown enough."""
    original, torch = kind.zero_grad, sys.modules["torch"]
    if "zero_grad" in guard.OFF or "zero_grad" in guard.installed():
        return

    @wraps(original)
    def zero_grad(self: Any, set_to_none: bool = True) -> Any:
        if not torch.compiler.is_dynamo_compiling():
            if counts.leader() is self:
                counts.led_clears += 1
            else:
                counts.cleared(self)
        return original(self, set_to_none)

    def remove() -> None:
        if kind.zero_grad is zero_grad:
            kind.zero_grad = original

    kind.zero_grad = zero_grad
    guard.on("zero_grad", remove)
