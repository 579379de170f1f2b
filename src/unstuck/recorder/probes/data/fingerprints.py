"""Fingerprints of batches and of the samples in them: bytes at fixed places of their tensors.

Nothing of torch is run on the tensors: their memory is read, so no mode, no hook and no random number of the user's
is touched. Prints are compared within this process only.
"""

from __future__ import annotations

import sys
from ctypes import c_char

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ROWS = 8  # samples of a batch that are looked at
BYTES = 512  # of each sample, spread over it
LEAVES = 4


def leaves(batch: Any, depth: int = 0) -> Iterator[Any]:
    """Plain tensors in main memory, in the order in which they lie in lists, tuples and dicts."""
    kind = type(batch)
    if kind is sys.modules["torch"].Tensor:
        yield batch
    elif depth < 4 and (kind in (list, tuple) or (isinstance(batch, tuple) and hasattr(kind, "_fields"))):
        for part in list.__iter__(batch) if kind is list else tuple.__iter__(batch):
            yield from leaves(part, depth + 1)
    elif depth < 4 and kind is dict:
        for part in batch.values():
            yield from leaves(part, depth + 1)


def rows(tensors: list[Any]) -> list[int] | None:
    """A print of each of the first samples; None where the tensors do not have one row a sample."""
    known = tensors[:LEAVES]
    if not known or any(not _readable(t) for t in known):
        return None
    count = known[0].size(0)
    if any(t.size(0) != count for t in known):
        return None
    views = [_view(t, count) for t in known]
    found = []
    for row in range(min(count, ROWS)):
        parts = tuple(bytes(view[row * size : (row + 1) * size : step]) for view, size, step in views)
        if any(part.count(part[:1]) != len(part) for part in parts):
            found.append(hash(parts))
    return found


def _readable(tensor: Any) -> bool:
    strided = tensor.layout is sys.modules["torch"].strided  # of others it cannot even be asked how they lie
    return (
        strided
        and tensor.is_cpu
        and tensor.dim() > 0
        and tensor.numel() > 0
        and tensor.is_contiguous()
        and bool(tensor.data_ptr())
    )


def _view(tensor: Any, count: int) -> tuple[memoryview, int, int]:
    whole = tensor.numel() * tensor.element_size()
    size = whole // count
    view = memoryview((c_char * whole).from_address(tensor.data_ptr())).cast("B")
    return view, size, max(1, size // BYTES) | 1  # odd: every byte of a number gets its turn
