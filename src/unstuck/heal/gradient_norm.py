"""The norm of all gradients of an optimizer, on the device where they are, and what may be done to them there."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""By the size of an element: the type as which its bits are multiplied by 0 or 1. NaN times 0 would be NaN."""


def gradients_of(optimizer: Any) -> list[Any]:
    groups = optimizer.param_groups
    return [grad for group in groups for p in group["params"] if (grad := p.grad) is not None]


def total_norm(gradients: list[Any]) -> Any:
    """A tensor of one number: NaN or Inf as soon as one element is. Nothing waits for it."""
    with torch.no_grad():
        try:
            norms = torch.stack(torch._foreach_norm(gradients))
        except RuntimeError:  # sparse ones among them, or several devices
            norms = _norms_one_by_one(gradients)
        if norms.dtype is torch.float16:  # ends at 65,504
            norms = _norms_one_by_one(gradients)
        return torch.linalg.vector_norm(norms)


def _norms_one_by_one(gradients: list[Any]) -> Any:
    first = gradients[0].device
    single = (
        torch.linalg.vector_norm(_elements(g), dtype=torch.promote_types(g.dtype, torch.float32)) for g in gradients
    )
    return torch.stack([norm.real.to(first, torch.float32, non_blocking=True) for norm in single])


def multiply(gradients: list[Any], factor: Any) -> None:
    """By a number, or by a tensor of one number."""
    with torch.no_grad():
        if isinstance(factor, float):
            for g in gradients:
                g.mul_(factor)
            return
        for device, dense in _by_device(gradients).items():
            torch._foreach_mul_(dense, factor.to(device, non_blocking=True))


def clear_unless(gradients: list[Any], good: Any) -> None:
    """Make all of them zero if `good` is false; who calls need not know whether it is."""
    with torch.no_grad():
        for device, dense in _by_device(gradients).items():
            flag = good.to(device, non_blocking=True)
            by_type: dict[Any, list[Any]] = {}
            for g in dense:
                kind = BITS.get(g.element_size())
                if kind is None:
                    g.masked_fill_(~flag, 0)
                else:
                    by_type.setdefault(kind, []).append(g.view(kind))
            for kind, bits in by_type.items():
                torch._foreach_mul_(bits, flag.to(kind))


def _by_device(gradients: list[Any]) -> dict[Any, list[Any]]:
    grouped: dict[Any, list[Any]] = {}
    for g in gradients:
        grouped.setdefault(g.device, []).append(_elements(g))
    return grouped


def _elements(gradient: Any) -> Any:
    """Those of a sparse gradient that are there; the same memory, so that they can be changed."""
    return gradient._values() if gradient.is_sparse else gradient


def decided_on_device(gradients: list[Any]) -> bool:
    """To read a number of a GPU is to wait until it has done all its work: there the guard reads later."""
    return bool(gradients[0].is_cuda)


class LateNorms:
    """Norms on their way from a GPU, oldest first, each with the words of its step."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Any, Any, tuple[Any, ...]]] = deque()

    def send(self, norm: Any, *words: Any) -> None:
        copy, event = norm.detach().to("cpu", non_blocking=True), None
        if norm.is_cuda:
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(norm.device))
        self._waiting.append((event, copy, words))

    def forget(self) -> None:
        self._waiting.clear()

    def arrived(self, *, wait: bool = False) -> list[tuple[float, tuple[Any, ...]]]:
        taken = []
        while self._waiting:
            event, copy, words = self._waiting[0]
            if event is not None and wait:
                event.synchronize()
            if event is not None and not event.query():
                break
            self._waiting.popleft()
            taken.append((float(copy), words))
        return taken
