"""Bytes of the first batch of a worker, noted before it is collated: what its tensors will take in shared memory."""

from __future__ import annotations

from typing import Any

from ... import flight, tensors
from ... import layout as at


def expect(fetcher: Any) -> None:
    """Note the size of the samples that are about to be collated, once: collating the first batch may be the end."""
    original = fetcher.collate_fn

    def collate_fn(samples: Any) -> Any:
        fetcher.collate_fn = original
        try:
            flight.words[at.W_BATCH_BYTES] = tensors.total_bytes(samples)
        except Exception:
            pass  # a sample of a kind that cannot be measured
        return original(samples)

    fetcher.collate_fn = collate_fn
