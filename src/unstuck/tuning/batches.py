"""What is in a batch: its tensors, samples and bytes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def count(batch: Any) -> int:
    """Samples in a batch: the first dimension of the first tensor in it; 1 if there is none."""
    found = next((tensor for tensor in tensors(batch) if tensor.dim() > 0), None)
    return 1 if found is None else int(found.shape[0])


def weight(batch: Any) -> int:
    """Bytes of the tensors in a batch."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(batch))


def tensors(batch: Any) -> list[Any]:
    """All tensors in nested lists, tuples and dicts."""
    import torch

    if isinstance(batch, torch.Tensor):
        return [batch]
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        return [tensor for part in batch for tensor in tensors(part)]
    return []
