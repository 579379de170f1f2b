"""What copying a batch to a GPU takes, out of its own memory and out of pinned memory, and what pinning it would take:
a piece of three batches is copied.

On a stream of its own, so that nothing of the training is waited for: what the training's own copy waits for beside
the copying is its work on the GPU, which cannot be told apart without stopping it.
"""

from __future__ import annotations

import sys
import threading
from itertools import pairwise
from time import monotonic_ns, perf_counter

from ... import facts, flight, governor, gpu, tensors
from ..data import batch_statistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..data.passes import Ledger

LARGE = 1_000_000
"""Bytes of a batch from which on its copy can be felt."""
PIECE = 8_000_000
"""Bytes of it that are copied to see how long it takes."""
TIMES = 3
NAMES = ("ordinary", "pinned", "pinning")
BEFORE = 24
"""Batches drawn before: the first steps are slower."""
APART = 24
"""Batches between the first measurement and the last, from which the time of a step is taken."""
ROOM = 1 << 30
"""Bytes that must be free on the GPU: a training that fills it is left alone."""


class Measured:
    """One loader's copies."""

    def __init__(self, ledger: Ledger) -> None:
        self.taken: list[tuple[float, ...]] = []
        """Seconds a byte: out of the batch's memory, out of pinned memory, from the one to the other."""
        self.drawn, self.waited, self.at = ledger.drawn, ledger.waited, monotonic_ns()


_known: dict[int, Measured] = {}
_stream: Any = None


def look(ledger: Ledger, batch: Any) -> None:
    """A batch came that is looked at, in a training whose losses are on a GPU."""
    if not gpu.used or ledger.drawn < BEFORE or not governor.allows():
        return
    known = _known.get(ledger.number)
    if known is not None and len(known.taken) >= TIMES:
        return
    torch = sys.modules["torch"]
    if not _may(torch):
        return
    parts = [part for _, part in tensors.parts(batch) if gpu.plain(part) and _ordinary(part)]
    size = sum(int(part.nbytes) for part in parts)
    if size < LARGE:
        return
    if known is None:
        known = _known[ledger.number] = Measured(ledger)
    if len(known.taken) == TIMES - 1 and ledger.drawn - known.drawn < APART:
        return
    with governor.Reading(), torch.no_grad():
        known.taken.append(_copy(torch, max(parts, key=lambda part: int(part.nbytes))))
    if len(known.taken) == TIMES:
        _tell(ledger, known, size, parts)


def _may(torch: Any) -> bool:
    if threading.current_thread() is not threading.main_thread() or not torch.cuda.is_initialized():
        return False
    return not torch.cuda.is_current_stream_capturing() and bool(torch.cuda.mem_get_info()[0] >= ROOM)


def _ordinary(part: Any) -> bool:
    return gpu.near(part) and part.is_contiguous() and not part.is_pinned()


def _copy(torch: Any, part: Any) -> tuple[float, ...]:
    global _stream
    piece = part.detach().reshape(-1)[: max(1, PIECE // int(part.element_size()))]
    if _stream is None:
        _stream = torch.cuda.Stream()
    with torch.cuda.stream(_stream):
        there, pinned = torch.empty_like(piece, device="cuda"), torch.empty_like(piece, pin_memory=True)
        _stream.synchronize()
        clock = [perf_counter()]
        for target, source in ((pinned, piece), (there, pinned), (there, piece)):
            target.copy_(source, non_blocking=True)
            _stream.synchronize()
            clock.append(perf_counter())
    pinning, quickly, slowly = (after - before for before, after in pairwise(clock))
    size = max(1, int(piece.nbytes))
    return slowly / size, quickly / size, pinning / size


def _tell(ledger: Ledger, known: Measured, size: int, parts: list[Any]) -> None:
    """The quickest of each: what else the machine does only makes them slower."""
    lasted = (monotonic_ns() - known.at) / 1e9
    columns = zip(*known.taken, strict=True)
    facts.tell(
        "copies",
        {
            **ledger.facts(),
            "bytes": size,
            **{name: size * min(column) for name, column in zip(NAMES, columns, strict=True)},
            "period": lasted / max(1, ledger.drawn - known.drawn),
            "waits": (ledger.waited - known.waited) / 1e9 / max(lasted, 1e-9),
            "moved": _moved(max(int(part.numel()) for part in parts)),
            "trains": bool(ledger.trained) or flight.steps() > ledger.steps,
        },
    )


def _moved(largest: int) -> bool:
    """A layer on the GPU is given data of that size which no layer made."""
    for about in batch_statistics.given.values():
        numbers = 1
        for size in about["shape"]:
            numbers *= size
        if about["away"] and numbers * 2 >= largest:
            return True
    return False
