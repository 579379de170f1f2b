"""Which part of a batch a loss was given as its target: by memory, or by value where there is little to compare."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMPARED = 1 << 15
"""Numbers that are compared, at most;"""
FEW = 4
"""and no fewer, where they are some of a part."""


def among(parts: list[tuple[str, Any]], target: Any) -> str | None:
    """`parts`: path and weak reference."""
    for path, ref in parts:
        part = ref()
        if part is not None and part.device == target.device and part.numel() and _same(part, target):
            return path
    return None


def _same(part: Any, target: Any) -> bool:
    """The same memory, or the same values; or those of its values that are no gaps."""
    torch = sys.modules["torch"]
    if part.numel() == target.numel() and part.data_ptr() == target.data_ptr() and part.dtype == target.dtype:
        return True
    if not target.numel() <= part.numel() <= COMPARED:
        return False
    if part.numel() == target.numel():
        return bool(torch.equal(_flat(part), _flat(target)))
    if not part.is_floating_point() or target.numel() < FEW:
        return False
    flat = _flat(part)
    flat = flat[torch.isfinite(flat)]
    return bool(flat.numel() == target.numel() and torch.equal(flat, _flat(target)))


def _flat(target: Any) -> Any:
    return target.detach().reshape(-1).double()
