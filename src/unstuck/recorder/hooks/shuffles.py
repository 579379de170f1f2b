"""Seam: `random.shuffle`, of arrays and tensors alone. It swaps their rows through views, which loses some."""

from __future__ import annotations

import sys

from .. import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def install(module: Any) -> None:
    """`module` is random."""
    original, whole = module.Random.__dict__["shuffle"], module.shuffle

    def shuffle(self: Any, *given: Any, **options: Any) -> Any:
        if not given or not _has_views(type(given[0])):
            return original(self, *given, **options)
        before = None
        try:
            from .. import dispatch

            before = dispatch.ask("shuffles", "rows", given[0])
        except Exception as fault:
            guard.off("shuffles", fault)
        answer = original(self, *given, **options)
        if before is not None:
            try:
                dispatch.emit("rows_shuffled", given[0], before, sys._getframe(1))
            except Exception as fault:
                guard.off("shuffles", fault)
        return answer

    module.Random.shuffle = shuffle
    ours = module.shuffle = module._inst.shuffle

    def remove() -> None:
        module.Random.shuffle = original
        if module.shuffle is ours:
            module.shuffle = whole

    guard.on("random.shuffle", remove)


def _has_views(kind: type) -> bool:
    """Its elements may be views; torch is there."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    return kind is getattr(torch, "Tensor", None) or (torch is not None and kind is getattr(numpy, "ndarray", None))
