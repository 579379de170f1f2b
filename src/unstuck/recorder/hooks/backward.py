"""Seam: the backward pass. `Tensor.backward` calls `torch.autograd.backward`, so one wrapper serves both.

It stays in place also in the steps that are not full: TorchScript and pickle know functions by identity.
"""

from __future__ import annotations

import sys
from functools import wraps

from .. import flight, guard, hiding
from .. import layout as at
from ..probes.learning import learning, losses
from ..probes.memory import device, graph_growth
from . import dataloader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def install(module: Any) -> None:
    """`module` is torch.autograd."""
    original = module.backward
    torch = sys.modules["torch"]  # still importing: it has no `compiler` yet

    @wraps(original)
    def backward(*arguments: Any, **options: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return original(*arguments, **options)
        if dataloader.scans is not None:
            dataloader.scans.at_backward()
        try:
            if hiding.listened():
                with hiding.Hidden():
                    losses.note(arguments, options)
            else:
                losses.note(arguments, options)
        except Exception as fault:
            guard.off("learning", fault)
        if not flight.full():
            return original(*arguments, **options)
        try:
            if hiding.listened():
                with hiding.Hidden():
                    _look(arguments, options)
            else:
                _look(arguments, options)
            flight.enter(at.BACKWARD)
        except Exception as fault:
            guard.off("backward", fault)
        try:
            return original(*arguments, **options)
        finally:
            try:
                flight.enter(at.BETWEEN)
            except Exception as fault:
                guard.off("backward", fault)

    def _look(arguments: Any, options: Any) -> None:
        graph_growth.at_backward(arguments, options)
        device.sample()
        if "learning" in guard.OFF:
            return
        try:
            learning.at_backward(arguments, options)
        except Exception as fault:
            guard.off("learning", fault)

    def remove() -> None:
        if module.backward is backward:  # not if somebody has wrapped it since
            module.backward = original

    learning.install()
    hiding.stand_aside(backward)  # type: ignore[arg-type]  # `wraps` hides that it is a function
    module.backward = backward
    guard.on("backward", remove)
