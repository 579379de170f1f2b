"""Bytes of a batch: what its tensors take in shared memory when a worker hands it over."""

from __future__ import annotations

import sys

from ... import flight
from ... import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEEP = 6


def tensor_bytes(batch: Any, depth: int = 0) -> int:
    """Of plain tensors and arrays in lists, tuples and dicts; anything else counts nothing."""
    kind = type(batch)
    if kind is sys.modules["torch"].Tensor:
        return int(batch.numel() * batch.element_size())
    if kind.__name__ == "ndarray" and kind.__module__ == "numpy":
        return int(batch.nbytes)
    if depth > DEEP:
        return 0
    if kind is list or isinstance(batch, tuple):
        return sum(tensor_bytes(part, depth + 1) for part in batch)
    return sum(tensor_bytes(part, depth + 1) for part in batch.values()) if kind is dict else 0


def expect(fetcher: Any) -> None:
    """Note the size of the samples that are about to be collated, once: collating the first batch may be the end."""
    original = fetcher.collate_fn

    def collate_fn(samples: Any) -> Any:
        fetcher.collate_fn = original
        try:
            flight.words[at.W_BATCH_BYTES] = tensor_bytes(samples)
        except Exception:
            pass  # a sample of a kind that cannot be measured
        return original(samples)

    fetcher.collate_fn = collate_fn
