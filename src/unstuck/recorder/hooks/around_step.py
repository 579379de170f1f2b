"""Seams around a step: learning-rate schedulers, gradient clipping, and the loss scaler of mixed precision.

A loss that the scaler multiplied is read as the script made it.
"""

from __future__ import annotations

import sys
from functools import wraps

from .. import dispatch, flight, guard, hiding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EVERY = 7  # one clipping in eight is looked at, beside those of sampled steps

scaled: list[Any] = [0, None]
"""Identity of the loss that was scaled last, and what it was before."""


class Stepped:
    """Of one scheduler: how often it stepped, and how often one training step after the time before."""

    __slots__ = ("last", "per_batch", "steps")

    def __init__(self) -> None:
        self.steps = self.per_batch = 0
        self.last = flight.steps()


def install_schedulers(module: Any) -> None:
    """`module` is torch.optim.lr_scheduler."""
    known: dict[int, Stepped] = {}
    for kind in (getattr(module, "LRScheduler", None), getattr(module, "ReduceLROnPlateau", None)):
        if kind is not None and "step" in vars(kind):
            _wrap_step(kind, known)


def _wrap_step(kind: Any, known: dict[int, Stepped]) -> None:
    original, torch, state, steps = kind.step, sys.modules["torch"], flight.state, flight.STEPS

    @wraps(original)
    def step(self: Any, *arguments: Any, **options: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return original(self, *arguments, **options)
        stepped = known.get(id(self))
        if stepped is None or stepped.steps < 2:
            try:
                stepped = first_steps(self, stepped)
            except Exception as fault:
                guard.off("schedulers", fault)
        else:
            stepped.steps += 1
            stepped.per_batch += state[steps] - stepped.last == 1
            stepped.last = state[steps]
        return original(self, *arguments, **options)

    def first_steps(scheduler: Any, stepped: Stepped | None) -> Stepped | None:
        """Its constructor calls it once; the next call tells where the script does."""
        if stepped is None:
            if len(known) > 16:
                return None
            stepped = known[id(scheduler)] = Stepped()
        else:
            stepped.steps += 1
            stepped.per_batch += state[steps] - stepped.last == 1
            stepped.last = state[steps]
        dispatch.emit("scheduler_stepped", scheduler, stepped)
        return stepped

    hiding.stand_aside(step)  # type: ignore[arg-type]  # `wraps` hides that it is a function
    kind.step = step
    guard.on(f"schedulers {kind.__name__}", lambda: setattr(kind, "step", original))


def install_clipping(module: Any) -> None:
    """`module` is torch.nn.utils.clip_grad: `torch.nn.utils` takes its functions from it right after."""
    original, torch, state = module.clip_grad_norm_, sys.modules["torch"], flight.state
    calls = told = 0

    @wraps(original)
    def clip_grad_norm_(parameters: Any, max_norm: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal calls, told
        norm = original(parameters, max_norm, *arguments, **options)
        if torch.compiler.is_dynamo_compiling():
            return norm
        calls += 1
        if state[flight.FULL] or not calls & EVERY:
            try:
                dispatch.emit("gradients_clipped", norm, max_norm, calls - told)
                told = calls
            except Exception as fault:
                guard.off("clipping", fault)
        return norm

    module.clip_grad_norm_ = clip_grad_norm_
    guard.on("clipping", lambda: setattr(module, "clip_grad_norm_", original))


# --- the loss scaler -----------------------------------------------------------------------------------------


def unscaled(root: Any) -> Any:
    return scaled[1] if scaled[0] == id(root) and scaled[1] is not None else root


def install_scaler(module: Any) -> None:
    """`module` is torch.amp.grad_scaler."""
    kind, torch = module.GradScaler, sys.modules["torch"]
    _wrap_scaler(kind, "update", "scaler_updated")
    _wrap_scaler(kind, "unscale_", "scaler_unscaled")
    original = kind.scale

    @wraps(original)
    def scale(self: Any, outputs: Any) -> Any:
        result = original(self, outputs)
        if torch.compiler.is_dynamo_compiling():
            return result
        try:
            with hiding.Hidden():
                if type(outputs) is torch.Tensor and outputs.numel() == 1:
                    scaled[0], scaled[1] = id(result), outputs.detach()
            dispatch.emit("scaler_scaled", self)
        except Exception as fault:
            guard.off("loss scaler", fault)
        return result

    kind.scale = scale
    guard.on("loss scaler scale", lambda: setattr(kind, "scale", original))


def _wrap_scaler(kind: Any, name: str, event: str) -> None:
    original, torch = getattr(kind, name), sys.modules["torch"]

    @wraps(original)
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        result = original(self, *arguments, **options)
        if not torch.compiler.is_dynamo_compiling():
            try:
                dispatch.emit(event, self)
            except Exception as fault:
                guard.off("loss scaler", fault)
        return result

    hiding.stand_aside(method)  # type: ignore[arg-type]  # `wraps` hides that it is a function
    setattr(kind, name, method)
    guard.on(f"loss scaler {name}", lambda: setattr(kind, name, original))
