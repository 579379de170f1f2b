"""Seams: a model that is compiled, and saved-tensor hooks. Both say what must not be touched from then on."""

from __future__ import annotations

import sys
from functools import wraps

from .. import dispatch, guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def install(module: Any) -> None:
    """`module` is torch._dynamo.eval_frame: it warns of global hooks where a model is compiled, so ours go first."""
    _before(module.OptimizedModule, "__init__", "model_compiled", "compiler")


def install_saved_tensors(module: Any) -> None:
    """`module` is torch.autograd.graph: once saved-tensor hooks are in use each reading of a saved tensor runs them."""
    _before(module.saved_tensors_hooks, "__enter__", "saved_tensor_hooks_used", "saved tensors")


def _before(kind: Any, name: str, event: str, probe: str) -> None:
    """The first call is an event."""
    original, heard, torch = getattr(kind, name), False, sys.modules["torch"]

    @wraps(original)
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal heard
        if not heard and not torch.compiler.is_dynamo_compiling():
            heard = True
            try:
                dispatch.emit(event)
            except Exception as fault:
                guard.off(probe, fault)
        return original(self, *arguments, **options)

    setattr(kind, name, method)
    guard.on(probe, lambda: setattr(kind, name, original))
