"""Seam: calls of modules, through torch's own global hooks; in place while a step is observed only."""

from __future__ import annotations

import sys

from .. import objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def watch(before: Callable[[Any, Any], None], after: Callable[[Any, Any, Any], None]) -> list[Any]:
    """Have these called around every module's forward; each of what is given back has a `remove`."""
    module = sys.modules["torch"].nn.modules.module
    return [module.register_module_forward_pre_hook(before), module.register_module_forward_hook(after)]


def is_tracing() -> bool:
    """Modules are called to be traced or compiled: what is seen there is no training."""
    torch = sys.modules["torch"]
    return torch._C._get_tracing_state() is not None or torch.compiler.is_dynamo_compiling()


def is_profiled() -> bool:
    """torch's profiler is at work: it uses the interpreter's profiling seam without being seen there."""
    return bool(sys.modules["torch"]._C._autograd._profiler_enabled())


def regularizes(module: Any) -> bool:
    """A dropout, or a batch norm with running statistics: in eval mode it does something else than in training."""
    kinds, own, kind = sys.modules["torch"].nn.modules, objects.instance_dict(module) or {}, type(module)
    if issubclass(kind, kinds.dropout._DropoutNd):
        rate = own.get("p", 0)
        return type(rate) in (int, float) and rate > 0
    return issubclass(kind, kinds.batchnorm._NormBase) and own.get("track_running_stats") is True
