"""An optimizer whose `step()` is guarded.

Before each step the norm of all gradients is compared with those of the last steps. On the CPU a bad step is not made.
On a GPU nothing waits for that number: the gradients are multiplied and cleared there by flags that only the GPU has
read, fused optimizers get the flag with which GradScaler skips a step, and what happened is read some steps later.
"""

from __future__ import annotations

import functools
import math
from types import MethodType
from typing import Any

import torch

from unstuck.heal import gradient_norm
from unstuck.heal.bad_steps import StepRecord
from unstuck.heal.good_state import put_back, weights_of
from unstuck.heal.gradient_norm import LateNorms, clear_unless, gradients_of, multiply, total_norm

SETTLE_STEPS = 8  # ordinary steps until their norms are taken in: together that costs less
MARKS = ("grad_scale", "found_inf")
"""What a fused optimizer divides its gradients by, and whether it skips the step: GradScaler sets them."""


class SkipStep(Exception):
    """Out of an optimizer that has called its closure and got a bad gradient."""

    def __init__(self, loss: Any) -> None:
        super().__init__()
        self.loss = loss


class Guard(StepRecord):
    """What `unstuck.guard()` returns: counts of what it did, and its state for checkpoints."""

    def __init__(
        self, optimizer: Any, clip: bool, back_off_after: int, rollback: bool, model: Any, max_bad: int | None
    ) -> None:
        super().__init__(optimizer, back_off_after, rollback, model, max_bad)
        self._clip = bool(clip)
        self._fresh: list[float] = []
        self._ordinary_below = 0.0
        self._late = LateNorms()
        self._calls_a_step = 0
        """How often the optimizer called its closure in the last step: LBFGS does so many times."""
        self.active = True
        self._own_before = optimizer.__dict__.get("step")
        self._inner = optimizer.step
        self._installed = optimizer.step = self._replacement()

    def remove(self) -> None:
        """Leave the optimizer alone from here on. Harmless if called twice."""
        self.active = False
        self._settle()
        if self._optimizer.__dict__.get("step") is self._installed:  # else a scheduler has wrapped it meanwhile
            if self._own_before is None:
                del self._optimizer.step
            else:
                self._optimizer.step = self._own_before

    def state_dict(self) -> dict[str, Any]:
        self._settle()
        self._take_late(wait=True)
        return super().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._fresh.clear()
        self._settle()

    # --- a step -------------------------------------------------------------------------------------------

    def _replacement(self) -> Any:
        """A method of the optimizer, as schedulers expect it, with the marks that they have left on the old one.

        A good step on the CPU is all in here, written out: it must cost next to nothing."""
        optimizer, inner, fresh = self._optimizer, self._inner, self._fresh
        norms_of, marks = torch._foreach_norm, optimizer.__dict__

        @functools.wraps(self._inner)
        def step(_: Any, *args: Any, **kwargs: Any) -> Any:
            if self._ordinary_below > 0 and not args and not kwargs and "found_inf" not in marks:
                gradients = gradients_of(optimizer)
                if gradients and not gradient_norm.decided_on_device(gradients):
                    total = 0.0
                    try:
                        for norm in norms_of(gradients):
                            value = norm.item()
                            total += value * value
                    except RuntimeError:  # sparse ones: `total_norm` knows how
                        total = math.nan
                    if total < self._ordinary_below:
                        self.steps += 1
                        fresh.append(total)
                        if len(fresh) >= SETTLE_STEPS:
                            self._settle()
                            self._keep_good()
                        return inner()
            return self._step(args, kwargs)

        step.unstuck_guard = self  # type: ignore[attr-defined]
        return MethodType(step, self._optimizer)

    def _settle(self) -> None:
        """Take the norms of ordinary steps in, and say below which square of a norm the next ones are ordinary."""
        self._history.add(*map(math.sqrt, self._fresh))
        self._good_in_a_row += len(self._fresh)
        self._fresh.clear()
        settled = self.active and self.rate == 1.0 and not self._bad_in_a_row and self._good_in_a_row
        limit = self._history.limit if self._clip else math.inf
        self._ordinary_below = limit * limit if settled else 0.0

    def _step(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self.active:
            return self._inner(*args, **kwargs)
        self._settle()
        closure = args[0] if args else kwargs.get("closure")
        if closure is not None:
            return self._step_with_closure(closure, args[1:], {k: v for k, v in kwargs.items() if k != "closure"})
        gradients = gradients_of(self._optimizer)
        if not gradients or (gradients[0].is_cuda and torch.cuda.is_current_stream_capturing()):
            return self._inner(*args, **kwargs)
        marks = self._optimizer.__dict__
        before = {name: marks[name] for name in MARKS if name in marks}
        try:
            if self._admits(gradients, fused=self._fused):
                return self._update(args, kwargs)
            self._optimizer._opt_called = True  # else a scheduler warns that step() was never called
            return None
        finally:
            for name in MARKS:
                marks.pop(name, None)
            marks.update(before)
            self._settle()

    @property
    def _fused(self) -> bool:
        """It takes `grad_scale` and `found_inf` from GradScaler, and skips the step by itself."""
        return bool(getattr(self._optimizer, "_step_supports_amp_scaling", False))

    def _step_with_closure(self, closure: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        calls = 0
        before: list[tuple[Any, Any]] = []

        def checked() -> Any:
            nonlocal calls, before
            loss = closure()
            gradients, calls = gradients_of(self._optimizer), calls + 1
            if calls == 1 and self._calls_a_step != 1:
                before = weights_of(self._optimizer)
            if calls > 1:  # a line search goes far out on purpose: only what is not finite is bad there
                good = not gradients or math.isfinite(float(total_norm(gradients)))
                if not good:
                    self._note(self.steps, math.nan, math.inf, math.inf)
            else:
                good = not gradients or self._admits(gradients, clip=self._calls_a_step == 1)
            if not good:
                raise SkipStep(loss)
            return loss

        try:
            return self._update((checked, *args), kwargs)
        except SkipStep as skip:
            if calls > 1:
                put_back(before)
            return skip.loss
        finally:
            self._calls_a_step = calls

    def _update(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The optimizer's own step, at the rate that is in use."""
        if self.rate == 1.0:
            return self._inner(*args, **kwargs)
        groups = [(group, group["lr"]) for group in self._optimizer.param_groups if "lr" in group]
        for group, rate in groups:
            group["lr"] = rate * self.rate
        try:
            return self._inner(*args, **kwargs)
        finally:
            for group, rate in groups:  # what schedulers see is theirs
                group["lr"] = rate

    # --- judging it ---------------------------------------------------------------------------------------

    def _admits(self, gradients: list[Any], *, clip: bool = True, fused: bool = False) -> bool:
        """Whether to make the step with these gradients, which may have been scaled down for it."""
        scale, found = getattr(self._optimizer, "grad_scale", None), getattr(self._optimizer, "found_inf", None)
        self.steps += 1
        limit, usual = (self._history.limit, self._history.usual) if self._clip and clip else (math.inf, math.inf)
        norm = total_norm(gradients)
        if scale is not None:
            norm = norm / scale
        if gradient_norm.decided_on_device(gradients):
            if self._take_late():
                return False
            self._keep_good()
            self._soften(gradients, norm, limit, usual, fused)
            self._late.send(norm if found is None else torch.where(found > 0, 0.0, norm), self.steps, limit, usual)
            return True
        if found is not None and float(found):
            return True  # GradScaler has seen it, and the optimizer skips the step
        value = float(norm)
        rolled_back = self._note(self.steps, value, limit, usual)
        if rolled_back or not math.isfinite(value):
            return False
        if value > limit:
            multiply(gradients, usual / value)
        self._keep_good()
        return True

    def _soften(self, gradients: list[Any], norm: Any, limit: float, usual: float, fused: bool) -> None:
        """The same on a device, by flags that nobody here has read."""
        scale, found = getattr(self._optimizer, "grad_scale", None), getattr(self._optimizer, "found_inf", None)
        not_finite = norm - norm  # NaN then, else 0: each operation is a kernel that is launched at every step
        if limit < math.inf:
            times = torch.threshold(norm / usual, limit / usual, 1.0)
            if fused:
                self._optimizer.grad_scale = times if scale is None else times * scale
            else:
                multiply(gradients, times.reciprocal())
        if fused:
            bad = torch.nan_to_num(not_finite, nan=1.0)
            self._optimizer.found_inf = bad if found is None else torch.maximum(bad, found)
        else:
            clear_unless(gradients, not_finite.eq(0))

    def _take_late(self, *, wait: bool = False) -> bool:
        """Read what has come from the device. True if the weights were rolled back for it: gradients, and norms still
        on their way, are those of the weights before."""
        for norm, (step, limit, usual) in self._late.arrived(wait=wait):
            if self._note(step, norm, limit, usual):
                self._late.forget()
                return True
        return False
