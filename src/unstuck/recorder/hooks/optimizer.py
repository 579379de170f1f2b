"""Seam: the optimizer's step, through torch's own global hooks. A training step ends here.

The hook before the step is in place only in full steps.
"""

from __future__ import annotations

import sys

from .. import flight, guard, hiding
from .. import layout as at
from ..probes.learning import learning, ownership, schedules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def install(module: Any) -> None:
    """`module` is torch.optim.optimizer."""
    torch = sys.modules["torch"]  # still importing: it has no `compiler` yet

    def before(optimizer: Any, arguments: Any, options: Any) -> None:
        if torch.compiler.is_dynamo_compiling():
            return
        try:
            flight.enter(at.OPTIMIZER)
        except Exception as fault:
            guard.off("optimizer", fault)
        _learn(learning.before_step, optimizer)

    def after(optimizer: Any, arguments: Any, options: Any) -> None:
        if torch.compiler.is_dynamo_compiling():
            return
        _learn(learning.after_step, optimizer)
        try:
            stepped()
        except Exception as fault:
            guard.off("optimizer", fault)

    handles = {"after": module.register_optimizer_step_post_hook(after)}

    def change(full: bool) -> None:
        if full and "before" not in handles:
            handles["before"] = module.register_optimizer_step_pre_hook(before)
        elif not full and "before" in handles:
            handles.pop("before").remove()

    def remove() -> None:
        flight.when_full_changes.pop("optimizer", None)
        for handle in handles.values():
            handle.remove()
        handles.clear()

    schedules.install_zero_grad(module)
    ownership.install(module)
    change(True)
    flight.when_full_changes["optimizer"] = change
    guard.on("optimizer", remove)


def _learn(look: Callable[[Any], object], optimizer: Any) -> None:
    if "learning" in guard.OFF:
        return
    try:
        if hiding.listened():
            with hiding.Hidden():
                look(optimizer)
        else:
            look(optimizer)
    except Exception as fault:
        guard.off("learning", fault)


stepped = flight.stepped
