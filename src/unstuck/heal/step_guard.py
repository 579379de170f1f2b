"""`unstuck.guard(optimizer)`: keeps NaN, Inf and gradients out of all proportion away from the weights."""

from __future__ import annotations

from typing import Any

from unstuck.heal.guarded_optimizer import Guard


def guard(
    optimizer: Any,
    *,
    clip: bool = True,
    back_off_after: int = 3,
    rollback: bool = False,
    model: Any = None,
    max_bad: int | None = 100,
) -> Guard:
    """Guard every `optimizer.step()` from here on; use the optimizer as before. Call it once for each optimizer.

    A step with a NaN or Inf gradient is skipped. With `clip` a gradient whose norm is out of all proportion to those of
    the last steps is scaled down to what is usual. After `back_off_after` such steps in a row the learning rate is
    halved, until steps are good again; with `rollback` the weights then go back to the last good ones. With `model`
    running statistics (BatchNorm) that a bad batch made NaN are restored. After `max_bad` bad steps in a row: an error.
    """
    for name, value in (("back_off_after", back_off_after), ("max_bad", max_bad)):
        if (value is not None or name != "max_bad") and (type(value) is not int or value < 1):
            raise ValueError(f"guard(): {name} must be a whole number of steps, 1 or more, not {value!r}")
    for name, flag in (("clip", clip), ("rollback", rollback)):
        if type(flag) is not bool:
            raise TypeError(f"guard(): {name} must be True or False, not {flag!r}")
    if isinstance(optimizer, (list, tuple, dict)):
        raise TypeError("guard() takes one optimizer: call it once for each")
    if not callable(getattr(optimizer, "step", None)) or not isinstance(getattr(optimizer, "param_groups", None), list):
        raise TypeError(f"guard() takes an optimizer of torch.optim, not {type(optimizer).__name__!r}")
    earlier = getattr(optimizer.step, "unstuck_guard", None)
    if earlier is not None and earlier.active:
        raise ValueError("this optimizer is guarded already")
    if model is not None and not callable(getattr(model, "named_buffers", None)):
        raise TypeError(f"guard(): model must be a torch.nn.Module, not {type(model).__name__!r}")
    if any(hasattr(p, "full_tensor") for group in optimizer.param_groups for p in group["params"]):
        raise ValueError(
            "guard() cannot judge sharded parameters (FSDP, DTensor): each rank sees a part of the gradient, and the "
            "ranks would decide differently"
        )
    return Guard(optimizer, clip, back_off_after, rollback, model, max_bad)
