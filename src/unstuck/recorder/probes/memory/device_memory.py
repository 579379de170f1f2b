"""Memory of the GPU: what torch's allocator has handed out, sampled before the backward pass of sampled steps.

Only where the script itself has begun to use CUDA. The allocator's own counters are read: nothing is synchronised.
"""

from __future__ import annotations

import sys
from time import monotonic
from types import FrameType
from typing import Any

from ... import flight
from ... import layout as at
from ...probe import Probe

GAP_SECONDS = 0.5  # between two samples
MOST_POINTS = 64  # of the curve


class DeviceMemory(Probe):
    """The curve of what is handed out when the activations of a step are there."""

    name = "device"

    def forget(self) -> None:
        self.curve: list[tuple[int, int]] = []  # step and bytes, thinned out as it grows longer
        self._next = 0.0
        self._stride = self._unkept = 0

    def before_backward(self, root: Any, frame: FrameType) -> None:  # it is the moment that counts
        now = monotonic()
        if now < self._next:
            return
        self._next = now + GAP_SECONDS
        handed_out = allocated()
        if handed_out is None:
            return
        flight.words[at.W_DEVICE_BYTES] = handed_out
        self._unkept += 1
        if self._unkept < self._stride:
            return
        self._unkept = 0
        self.curve.append((flight.steps(), handed_out))
        if len(self.curve) >= MOST_POINTS:
            self.curve = self.curve[::2]
            self._stride = max(2, 2 * self._stride)


def allocated() -> int | None:
    """Bytes handed out on the present device; None where CUDA was never begun in this process."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return int(cuda.memory_allocated())
