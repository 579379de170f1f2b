"""Schedulers, clipping, the loss scaler and the clearing of gradients: counted where torch's own code does them."""

from __future__ import annotations

import sys
from functools import wraps

from ... import flight, guard, hiding, user_code
from ... import gpu as late
from . import ownership

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

schedulers: dict[int, Scheduler] = {}
clips = {"calls": 0, "clipped": 0, "hardest": 0.0, "sum_ratio": 0.0, "max_norm": 0.0, "scaled": 0}
clip_site: list[str | int] | None = None
scaler: dict[str, Any] = {"scale": None, "first": None, "lowest": None, "updates": 0, "skipped_in_row": 0}
clears = 0
"""Calls of zero_grad."""
_plain_root: tuple[int, Any] = (0, None)
"""A loss that a GradScaler multiplied, and what it was before."""
EACH, EVERY = 64, 4
"""On a GPU: so many numbers are read at first, then one of every four."""


SETTINGS = (
    "step_size", "gamma", "T_max", "eta_min", "milestones", "total_steps", "patience", "mode", "factor", "total_iters",
)  # fmt: skip


class Scheduler:
    __slots__ = ("batches", "kind", "last_step", "per_batch", "settings", "site", "steps")

    def __init__(self, scheduler: Any) -> None:
        self.kind = type(scheduler).__name__
        self.site: list[str | int] | None = None
        self.steps = self.per_batch = 0
        self.last_step = -1
        self.batches = 0
        own = vars(scheduler)
        self.settings = {name: _plain(own[name]) for name in SETTINGS if name in own}

    def plain(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "site": self.site,
            "steps": self.steps,
            "per_batch": self.per_batch,
            "settings": self.settings,
        }


def _plain(value: Any) -> object:
    return (
        value
        if isinstance(value, bool | int | float | str)
        else sorted(value)[:8]
        if hasattr(value, "keys")
        else str(value)[:60]
    )


def install_schedulers(module: Any) -> None:
    """`module` is torch.optim.lr_scheduler."""
    for kind in (getattr(module, "LRScheduler", None), getattr(module, "ReduceLROnPlateau", None)):
        if kind is not None and "step" in vars(kind):
            _wrap(kind, "step", _scheduler_stepped, "schedulers")


def _scheduler_stepped(scheduler: Any) -> None:
    known = schedulers.get(id(scheduler))
    if known is None:
        if len(schedulers) > 16:
            return
        known = schedulers[id(scheduler)] = Scheduler(scheduler)
        known.last_step = flight.steps()
        return  # its constructor calls it once
    known.steps += 1
    if known.site is None:
        known.site = user_code.call_site_of(("torch/optim/",))
    known.per_batch += flight.steps() - known.last_step == 1
    known.last_step = flight.steps()


def install_zero_grad(module: Any) -> None:
    """`module` is torch.optim.optimizer. It is called at every step, so it does nothing but count."""
    kind, torch = module.Optimizer, sys.modules["torch"]
    original = kind.zero_grad

    @wraps(original)
    def zero_grad(self: Any, *arguments: Any, **options: Any) -> Any:
        if not torch.compiler.is_dynamo_compiling():
            global clears
            clears += 1
            known = ownership.by_identity.get(id(self))
            if known is not None:
                known.clears += 1
        return original(self, *arguments, **options)

    kind.zero_grad = zero_grad
    guard.on("zero_grad", lambda: setattr(kind, "zero_grad", original))


def install_clipping(module: Any) -> None:
    """`module` is torch.nn.utils.clip_grad: `torch.nn.utils` takes its functions from it right after."""
    original = module.clip_grad_norm_
    torch = sys.modules["torch"]

    @wraps(original)
    def clip_grad_norm_(parameters: Any, max_norm: Any, *arguments: Any, **options: Any) -> Any:
        norm = original(parameters, max_norm, *arguments, **options)
        if torch.compiler.is_dynamo_compiling() or not late.plain(norm):
            return norm
        try:
            _clipped(norm, max_norm)
        except Exception as fault:
            guard.off("clipping", fault)
        return norm

    module.clip_grad_norm_ = clip_grad_norm_
    guard.on("clipping", lambda: setattr(module, "clip_grad_norm_", original))


def _clipped(norm: Any, limit: Any) -> None:
    global clip_site
    if clip_site is None:
        clip_site = user_code.call_site_of(("torch/nn/utils/",))
    scaled = scaler.get("unscaled") is False
    if late.away(norm):
        if flight.steps() < EACH or not flight.steps() % EVERY:
            late.read([norm], lambda values: _clipped_to(values[0], float(limit), scaled))
    elif getattr(norm, "is_cpu", False):
        _clipped_to(float(norm), float(limit), scaled)


def _clipped_to(norm: float, limit: float, scaled: bool) -> None:
    clips["calls"] += 1
    clips["max_norm"] = limit
    if limit <= 0:
        return
    ratio = norm / limit
    if ratio - ratio == 0.0 and ratio > 1:
        clips["clipped"] += 1
        clips["sum_ratio"] += ratio
        clips["hardest"] = max(clips["hardest"], ratio)
    clips["scaled"] += scaled


def install_scaler(module: Any) -> None:
    """`module` is torch.amp.grad_scaler."""
    kind, torch = module.GradScaler, sys.modules["torch"]
    _wrap(kind, "update", _scaler_updated, "loss scaler", late=True)
    _wrap(kind, "unscale_", _unscaled, "loss scaler")
    original = kind.scale

    @wraps(original)
    def scale(self: Any, outputs: Any) -> Any:
        global _plain_root
        scaled = original(self, outputs)
        if torch.compiler.is_dynamo_compiling():
            return scaled
        try:
            value = _scale_of(self)
            scaler["unscaled"] = not getattr(self, "_enabled", False)
            if value is not None:
                scaler["scale"] = value
                scaler["first"] = scaler["first"] or value
            if type(outputs) is torch.Tensor and outputs.numel() == 1:
                _plain_root = (id(scaled), outputs.detach())
        except Exception as fault:
            guard.off("loss scaler", fault)
        return scaled

    kind.scale = scale


def _scale_of(scaler_: Any) -> float | None:
    own = getattr(scaler_, "_scale", None)
    return float(own) if own is not None and own.is_cpu and getattr(scaler_, "_enabled", False) else None


def _unscaled(owner: Any) -> None:
    scaler["unscaled"] = True


def _scaler_updated(owner: Any) -> None:
    value, own = _scale_of(owner), getattr(owner, "_scale", None)
    if value is not None:
        _scale_is(value)
    elif own is not None and late.away(own) and (flight.steps() < EACH or not flight.steps() % EVERY):
        late.read([own], lambda values: _scale_is(values[0]))


def _scale_is(value: float) -> None:
    scaler["first"] = scaler["first"] or value
    scaler["updates"] += 1
    scaler["skipped_in_row"] = scaler["skipped_in_row"] + 1 if value < (scaler["scale"] or value) else 0
    scaler["scale"] = value
    scaler["lowest"] = value if scaler["lowest"] is None else min(scaler["lowest"], value)


def unscaled_value(root: Any) -> float:
    """The loss as the script made it, also where a GradScaler multiplied it."""
    value: float = unscaled_tensor(root).item()
    return value


def unscaled_tensor(root: Any) -> Any:
    number, plain = _plain_root
    return plain if number == id(root) and plain is not None else root


def _wrap(kind: Any, name: str, note: Callable[[Any], object], probe: str, *, late: bool = False) -> None:
    original = getattr(kind, name)
    torch = sys.modules["torch"]

    @wraps(original)
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return original(self, *arguments, **options)
        if late:
            result = original(self, *arguments, **options)
        try:
            note(self)
        except Exception as fault:
            guard.off(probe, fault)
        return result if late else original(self, *arguments, **options)

    hiding.stand_aside(method)  # type: ignore[arg-type]  # `wraps` hides that it is a function
    setattr(kind, name, method)
    guard.on(f"{probe} {name}", lambda: setattr(kind, name, original))
