"""Seams: the loss scaler. A loss that it multiplied is read as the script made it."""

from __future__ import annotations

import sys
from functools import wraps

from .. import dispatch, guard, hiding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

scaled: list[Any] = [0, None]
"""Identity of the loss that was scaled last, and what it was before."""


def unscaled(root: Any) -> Any:
    return scaled[1] if scaled[0] == id(root) and scaled[1] is not None else root


def install(module: Any) -> None:
    """`module` is torch.amp.grad_scaler."""
    kind, torch = module.GradScaler, sys.modules["torch"]
    _wrap(kind, "update", "scaler_updated")
    _wrap(kind, "unscale_", "scaler_unscaled")
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


def _wrap(kind: Any, name: str, event: str) -> None:
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
