"""One search over one loader, from the loader to what was found."""

from __future__ import annotations

import signal
import threading
import time

from . import guard, settings
from .batches import count, tensors
from .bounds import limits
from .clone import SameRandom, clone
from .patience import Patience
from .races import OutOfTime
from .search import Search
from .signs import Signs
from .step import Step
from .trial import Trial
from .verdict import found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .outcome import Tuned
    from .settings import Settings

FIRST_BATCH, AT_LEAST, FRESH_START = 60.0, 10.0, 20.0
"""Seconds a candidate may take for a batch: where nothing is known of the data yet; else at least; and in addition
where workers begin with a fresh interpreter."""
GOLDEN, FURTHEST = 0.618034, 20_000
"""Where the trials begin: spread over the pass, but not so far on that the drawing takes time."""


def tune(
    loader: Any,
    *,
    seconds: float,
    step: Step | None = None,
    patience: Patience | None = None,
    slowest: float = 0.0,
    tell: Callable[[Tuned, Search], object] | None = None,
) -> Tuned:
    """Search for so many seconds. `slowest` is the longest that a batch is known to have taken."""
    gpu = _uses_gpu()
    patience = patience or Patience()
    present = settings.of(loader)
    found_limits = limits(loader, present, gpu)
    signs = Signs(loader, present)
    first_batches = [slowest] if slowest else []
    opened = 0

    def open_trial(candidate: Settings) -> Trial:
        nonlocal opened
        timeout = max(AT_LEAST, 10 * max(first_batches)) if first_batches else FIRST_BATCH
        timeout += FRESH_START * (guard.start_method(candidate.start_method) != "fork")
        left = max(AT_LEAST, seconds - search.elapsed)
        try:
            trial = Trial(
                loader,
                candidate,
                timeout=min(timeout, left),
                patience=patience,
                take=_to_gpu if gpu else None,
                size=loader.batch_size,
                # Each begins at another place: else all but the first would read what is in memory already.
                skip=min(FURTHEST, int(opened * GOLDEN % 1 * 0.9 * (found_limits.length or 0))),
            )
        except RuntimeError as error:
            if left < timeout and "timed out" in str(error):  # it was given less than it may take: it did not fail
                raise OutOfTime from error
            raise
        opened += 1
        first_batches.append(trial.start_up)
        return trial

    search = Search(
        present,
        found_limits,
        open_trial,
        seconds=seconds,
        step=step,
        tell=None if tell is None else lambda search: tell(found(search, signs.keeps()), search),
        why_not=signs.why_not,
    )
    with SameRandom(), Attentive(patience):
        search.run()
    return found(search, signs.keeps())


class Attentive:
    """Ctrl-C ends the search, not the script; where the script has a handler of its own, that one stays."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._set = False

    def __enter__(self) -> None:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._patience.interrupt)
            self._set = True

    def __exit__(self, *_: object) -> None:
        self._patience.end()
        if self._set:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _uses_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())


def _to_gpu(batch: Any) -> None:
    """As a training does: else pinned memory would only ever cost. The last copy is waited for."""
    import torch

    for tensor in tensors(batch):
        tensor.to("cuda", non_blocking=True)
    torch.cuda.current_stream().synchronize()


def measure_step(loader: Any, consume: Callable[[Any], object], seconds: float) -> Step | None:
    """What `consume` takes for a batch, over a few of them."""
    with SameRandom():
        taken, batches = [], 0
        began = time.monotonic()
        for batch in clone(loader, settings.of(loader).but(num_workers=0)):
            mark, busy = time.perf_counter(), time.process_time()
            consume(batch)
            if _uses_gpu():
                _synchronize()
            taken.append((time.perf_counter() - mark, time.process_time() - busy))
            batches += 1
            if batches >= 20 or (batches >= 3 and time.monotonic() - began > seconds):
                break
        if not taken:
            return None
        usual = taken[1:] or taken  # the first one warms up
        samples = loader.batch_size or count(batch)
        mean = [sum(column) / len(usual) for column in zip(*usual, strict=True)]
        return Step(compute=mean[0], cpu=mean[1], batch=samples, batches=batches)


def _synchronize() -> None:
    import torch

    torch.cuda.synchronize()
