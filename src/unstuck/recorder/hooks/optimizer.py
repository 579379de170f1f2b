"""Seam: the optimizer's step, through torch's own global hooks, and its constructor. A training step ends here.

The hook before the step is in place only while steps are sampled.
"""

from __future__ import annotations

import sys
from functools import wraps

from .. import dispatch, flight, guard, stepping
from .. import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Counts:
    """By the identity of an optimizer: how often it has stepped, and how often its gradients were cleared."""

    __slots__ = ("all_clears", "clears", "steps")

    def __init__(self) -> None:
        self.steps: dict[int, int] = {}
        self.clears: dict[int, int] = {}
        self.all_clears = 0


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
            guard.attempt("optimizer", self._begin, optimizer)

    @staticmethod
    def _begin(optimizer: Any) -> None:
        stepping.by_hand.inside = True
        flight.enter(at.OPTIMIZER)
        dispatch.emit("before_step", optimizer)

    def stepped(self, optimizer: Any, leads: bool) -> None:
        if flight.full():
            dispatch.emit("after_step", optimizer, self._counts.steps[id(optimizer)])
        stepping.by_hand.inside = False
        if leads:
            stepping.turn()
            self.change(flight.full())


def install(module: Any) -> None:
    """`module` is torch.optim.optimizer."""
    torch = sys.modules["torch"]  # still importing: it has no `compiler` yet
    counts, state = Counts(), flight.state
    made_by, full, steps, due, step_word = counts.steps, flight.FULL, flight.STEPS, flight.DUE, at.W_STEP
    leader = rival = 0
    sampling = Sampling(module, counts)

    def after(optimizer: Any, arguments: Any, options: Any) -> None:
        """Of several optimizers one leads, so that a round of all is one step; if it rests, another takes its place."""
        nonlocal leader, rival
        if torch.compiler.is_dynamo_compiling():
            return
        key = id(optimizer)
        made_by[key] = made_by.get(key, 0) + 1
        if key == leader:
            rival = 0
            made = state[steps] = state[steps] + 1
            flight.words[step_word] = made
            if made >= state[due]:
                guard.attempt("optimizer", sampling.stepped, optimizer, True)
            return
        leads = key == rival or not leader
        rival = key
        if leads:
            leader, rival = key, 0
            stepping.count()
        if leads or state[full]:
            guard.attempt("optimizer", sampling.stepped, optimizer, leads)

    handle = module.register_optimizer_step_post_hook(after)

    def remove() -> None:
        sampling.change(False)
        handle.remove()

    guard.on("optimizer", remove)
    _wrap_built(module.Optimizer, counts)
    _wrap_cleared(module.Optimizer, counts)


def _wrap_built(kind: Any, counts: Counts) -> None:
    original = kind.__init__

    @wraps(original)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        try:
            counts.steps[id(self)] = counts.clears[id(self)] = 0
            dispatch.emit("optimizer_built", self, sys._getframe(1), counts)
        except Exception as fault:
            guard.off("optimizers built", fault)

    kind.__init__ = __init__

    def remove() -> None:
        if kind.__init__ is __init__:
            kind.__init__ = original

    guard.on("optimizers built", remove)


def _wrap_cleared(kind: Any, counts: Counts) -> None:
    """It is called at every step, so it does nothing but count."""
    original, cleared, torch = kind.zero_grad, counts.clears, sys.modules["torch"]

    @wraps(original)
    def zero_grad(self: Any, *arguments: Any, **options: Any) -> Any:
        if not torch.compiler.is_dynamo_compiling():
            counts.all_clears += 1
            cleared[id(self)] = cleared.get(id(self), 0) + 1
        return original(self, *arguments, **options)

    kind.zero_grad = zero_grad
    guard.on("zero_grad", lambda: setattr(kind, "zero_grad", original))
