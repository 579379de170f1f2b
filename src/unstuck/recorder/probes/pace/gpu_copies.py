"""What copying a batch to a GPU takes, out of its own memory and out of pinned memory, and what pinning it would take:
a piece of three batches is copied.

On a stream of its own, so that it waits for nothing of the training: the training's own copy also waits for its work on
the GPU, and the two cannot be separated without stopping it.
"""

from __future__ import annotations

import sys
import threading
from itertools import pairwise
from math import prod
from time import monotonic_ns, perf_counter
from typing import Any

from ... import dispatch, flight, gpu, journal, tensors
from ...loading import Loading
from ...probe import Probe
from ...records.loaders import GpuCopies as Copied

MIN_BYTES = 1_000_000  # of a batch, from which on its copy can be felt
PIECE_BYTES = 8_000_000  # of it that are copied to see how long it takes
COPIES = 3
MIN_DRAWN = 24  # batches before the first copy: the first steps are slower
MIN_APART = 24  # batches between the first copy and the last, from which the time of a step is taken
MIN_FREE = 1 << 30  # bytes of the GPU: a training that fills it is left alone
MOST_LOADERS = 16


class Measured:
    """One loader's copies."""

    def __init__(self, loading: Loading) -> None:
        self.taken: list[tuple[float, float, float]] = []
        """Seconds a byte: out of the batch's memory, out of pinned memory, from the one to the other."""
        self.drawn, self.waited, self.at = loading.drawn, loading.waited, monotonic_ns()


class GpuCopies(Probe):
    name = "copies"
    governed = frozenset(("batch_looked_at",))

    def __init__(self) -> None:
        self._known: dict[int, Measured] = {}
        self._stream: Any = None

    def forget(self) -> None:
        gpu.copies.abandon(self._stream)
        self._known, self._stream = {}, None

    def batch_looked_at(self, loading: Loading, _iterator: Any, batch: Any) -> None:
        """In a training whose losses are on a GPU."""
        if not gpu.copies.used or loading.drawn < MIN_DRAWN:
            return
        known, torch = self._known.get(loading.number) or Measured(loading), sys.modules["torch"]
        if not _wants(known, loading) or not _may(torch):
            return
        parts = [part for _, part in tensors.plain_tensors(batch) if gpu.plain(part) and _ordinary(part)]
        size = sum(int(part.nbytes) for part in parts)
        if size < MIN_BYTES:
            return
        if len(self._known) < MOST_LOADERS:
            self._known[loading.number] = known
        with torch.no_grad():
            known.taken.append(self._copy(torch, max(parts, key=lambda part: int(part.nbytes))))
        if len(known.taken) == COPIES:
            journal.tell(_copied(loading, known, size, max(int(part.numel()) for part in parts)))

    def _copy(self, torch: Any, part: Any) -> tuple[float, float, float]:
        piece = part.detach().reshape(-1)[: max(1, PIECE_BYTES // int(part.element_size()))]
        if self._stream is None:
            self._stream = torch.cuda.Stream()
        stream = self._stream
        with torch.cuda.stream(stream):
            there, pinned = torch.empty_like(piece, device="cuda"), torch.empty_like(piece, pin_memory=True)
            stream.synchronize()
            clock = [perf_counter()]
            for target, source in ((pinned, piece), (there, pinned), (there, piece)):
                target.copy_(source, non_blocking=True)
                stream.synchronize()
                clock.append(perf_counter())
        pinning, quickly, slowly = (after - before for before, after in pairwise(clock))
        size = max(1, int(piece.nbytes))
        return slowly / size, quickly / size, pinning / size


def _wants(known: Measured, loading: Loading) -> bool:
    taken = len(known.taken)
    return taken < COPIES - 1 or (taken == COPIES - 1 and loading.drawn - known.drawn >= MIN_APART)


def _may(torch: Any) -> bool:
    if threading.current_thread() is not threading.main_thread() or not torch.cuda.is_initialized():
        return False
    return not torch.cuda.is_current_stream_capturing() and bool(torch.cuda.mem_get_info()[0] >= MIN_FREE)


def _ordinary(part: Any) -> bool:
    return gpu.near(part) and part.is_contiguous() and not part.is_pinned()


def _copied(loading: Loading, known: Measured, size: int, largest: int) -> Copied:
    """The quickest of each: what else the machine does only makes them slower."""
    lasted = (monotonic_ns() - known.at) / 1e9
    ordinary, pinned, pinning = (size * min(column) for column in zip(*known.taken, strict=True))
    return Copied(
        **loading.about(),
        bytes=size,
        ordinary=ordinary,
        pinned=pinned,
        pinning=pinning,
        period=lasted / max(1, loading.drawn - known.drawn),
        waits=(loading.waited - known.waited) / 1e9 / max(lasted, 1e-9),
        moved=_moved(largest),
        trains=bool(loading.trained) or flight.steps() > loading.steps,
    )


def _moved(largest: int) -> bool:
    """A layer on the GPU is given data of that size which no layer made."""
    given = dispatch.probe("data").given.values()
    return any(layer.away and prod(layer.shape) * 2 >= largest for layer in given)
