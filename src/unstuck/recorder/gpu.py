"""What is on a GPU, read without waiting for it: it copies it out when it comes to that, we take it later.

Nothing here synchronises: the copies go into pinned memory, and an event says when they are there.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from time import monotonic, sleep

from . import governor, guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Waiting = tuple[Any, list[Any], Callable[[list[Any]], object], str]

MANY = 64
"""Copies that may be on their way at one time."""
LAST = 0.3
"""Seconds for which the end of the process waits for them."""


def away(tensor: Any) -> bool:
    """On a device that is read late."""
    return getattr(tensor, "is_cuda", False) is True


def plain(tensor: Any) -> bool:
    """Torch's own tensor or parameter. Of others a mere look may be dear: a DTensor's elements are gathered from all
    ranks, a fake one has none, one made for inference has no version."""
    torch = sys.modules["torch"]
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and not tensor.is_inference()


def near(tensor: Any) -> bool:
    """Can be read at once."""
    return bool(tensor.device.type == "cpu") and not away(tensor)


def thinned(tensor: Any, most: int, kept: int) -> Any:
    """Every second entry along its longest dimension, until it is small; the dimension `kept` stays whole."""
    while tensor.numel() > most:
        others = [(int(size), dim) for dim, size in enumerate(tensor.shape) if dim != kept % tensor.dim()]
        longest, dim = max(others, default=(1, 0))
        if longest < 2:
            break
        tensor = tensor[(slice(None),) * dim + (slice(None, None, 2),)]
    return tensor


class Copies:
    """Those on their way, oldest first."""

    __slots__ = ("_parents", "_waiting", "exact", "used")

    def __init__(self) -> None:
        self.exact = bool(os.environ.get("UNSTUCK_TRACE_NAN"))
        """Wait for each loss instead: `--trace-nan`."""
        self.used = False
        """Something was on a GPU."""
        self._waiting: deque[Waiting] = deque()
        self._parents: list[object] = []
        """In a forked child: what it must not free."""

    def bring(self, tensors: list[Any], then: Callable[[list[Any]], object], probe: str = "learning") -> bool:
        """Have these copied, all of one device; `then` gets the copies. False where too many wait already."""
        torch = sys.modules["torch"]
        self.used = True
        governor.governor.uses_gpu()
        on_gpu = tensors[0].is_cuda
        if len(self._waiting) >= MANY or (on_gpu and torch.cuda.is_current_stream_capturing()):
            return False
        with torch.no_grad():
            copies = [tensor.detach().to("cpu", non_blocking=True, copy=True) for tensor in tensors]
        event = None
        if on_gpu:
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(tensors[0].device))
        self._waiting.append((event, copies, then, probe))
        return True

    def read(self, numbers: list[Any], then: Callable[[list[float]], object]) -> bool:
        """The same for single numbers."""
        torch = sys.modules["torch"]
        if len(self._waiting) >= MANY:
            return False
        with torch.no_grad():
            whole = torch.stack([number.detach().reshape(()).float() for number in numbers])
        return self.bring([whole], lambda copies: then([float(number) for number in copies[0].tolist()]))

    def numbers(self, tensors: list[Any], take: Callable[[list[float]], object]) -> None:
        """Their values: now, or when the GPU has come to them."""
        if away(tensors[0]):
            self.read(tensors, take)
        else:
            take([float(tensor) for tensor in tensors])

    def collect(self) -> None:
        """Take what has come, oldest first."""
        while self._waiting:
            event, copies, then, probe = self._waiting[0]
            if event is not None and not event.query():
                return
            self._waiting.popleft()
            try:
                then(copies)
            except Exception as fault:
                guard.off(probe, fault)

    def last(self) -> None:
        """At the end of the process: what is still on its way, if it comes soon."""
        until = monotonic() + LAST
        self.collect()
        while self._waiting and monotonic() < until:
            sleep(0.005)
            self.collect()

    def forget(self) -> None:
        """In a forked child: what was on its way is its parent's."""
        self.abandon(self._waiting)
        self._waiting = deque()

    def abandon(self, held: object) -> None:
        """In a forked child: let go of something, but free nothing of what is in it. What was on a GPU, or in pinned
        memory, is given back to a driver that does not run in the child: that would end the child."""
        if self.used:
            self._parents.append(held)


copies = Copies()
bring = copies.bring
