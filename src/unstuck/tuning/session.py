"""One search over one loader: `unstuck.tune(loader)`, and `unstuck tune` inside a script."""

from __future__ import annotations

import time
from dataclasses import asdict

from ..recorder import tensors
from ..takeover import import_safe
from ..takeover.interrupts import Attentive, Patience
from ..takeover.loaders_in_use import Step, samples_in, wait_for_gpu
from ..takeover.untouched import SameRandom
from . import worker_settings
from .clone import clone
from .dataset_signs import Signs
from .race import OutOfTime
from .search_limits import limits
from .setting_search import Search
from .trial import Trial
from .tuned import Tuned, outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..takeover.inside import Takeover
    from ..takeover.loaders_in_use import LoaderInUse
    from .worker_settings import Settings

FIRST_SECONDS, LEAST_SECONDS = 60.0, 10.0  # a candidate may take for a batch: the first of all; later at least
FRESH_SECONDS = 20.0  # more, where workers begin with a fresh interpreter
GOLDEN, FURTHEST = 0.618034, 20_000  # where trials begin: spread over the pass, but not too far to draw to
MEASURED_BATCHES = 20  # of `consume`


def tune(
    loader: Any,
    *,
    seconds: float = 60.0,
    consume: Callable[[Any], object] | float | None = None,
    verbose: bool = False,
) -> Tuned:
    """Measure a DataLoader with other settings (workers, prefetch, …) and say which are best.

    `consume` is what is done with a batch, as a function of it or in seconds: then it is also known whether data limit
    the training, and the choice is made for the training, not for the loader alone. `loader` itself, its generator
    and the random numbers of this process stay as they are; samples are read, also in this process. Ctrl-C ends the
    search: the best so far is returned. Prints nothing unless `verbose`.
    """
    if not seconds > 0:
        raise ValueError(f"seconds must be above 0, not {seconds!r}")
    step: Step | None = None
    if callable(consume):
        step = _measure_step(loader, consume, seconds * 0.1)
    elif consume is not None:
        step = Step(compute=float(consume), cpu=0.0, batch=loader.batch_size or 1)
    patience = Patience()
    with Attentive(patience):
        tuned = search(loader, seconds=seconds, step=step, patience=patience)
    if verbose:
        from unstuck.tuning.tune_page import print_tuned

        print_tuned(tuned)
    return tuned


def tune_in_script(takeover: Takeover, used: LoaderInUse) -> dict[str, Any]:
    def progress(tuned: Tuned, search: Search) -> None:
        takeover.tell(
            "progress",
            elapsed=search.elapsed,
            now=search.races.now.settings.words(),
            best=search.best.settings.words(),
            rate=search.best.rate,
            result=asdict(tuned),
        )

    tuned = search(
        used.loader,
        seconds=float(takeover.options["seconds"]),
        step=used.step(),
        patience=takeover.patience,
        slowest=used.slowest,
        tell=progress,
    )
    return asdict(tuned)


def search(
    loader: Any,
    *,
    seconds: float,
    step: Step | None,
    patience: Patience,
    slowest: float = 0.0,
    tell: Callable[[Tuned, Search], object] | None = None,
) -> Tuned:
    """`slowest` is the longest that a batch is known to have taken."""
    gpu = _uses_gpu()
    present = worker_settings.of_loader(loader)
    bounds = limits(loader, present, gpu)
    signs = Signs(loader, present)
    first_batches = [slowest] if slowest else []
    opened = 0

    def open_trial(candidate: Settings) -> Trial:
        nonlocal opened
        timeout = max(LEAST_SECONDS, 10 * max(first_batches)) if first_batches else FIRST_SECONDS
        timeout += FRESH_SECONDS * (import_safe.start_method(candidate.start_method) != "fork")
        left = max(LEAST_SECONDS, seconds - searching.elapsed)
        try:
            trial = Trial(
                loader,
                candidate,
                timeout=min(timeout, left),
                patience=patience,
                take=_to_gpu if gpu else None,
                size=loader.batch_size,
                # Each begins at another place: else all but the first would read what is in memory already.
                skip=min(FURTHEST, int(opened * GOLDEN % 1 * 0.9 * (bounds.length or 0))),
            )
        except RuntimeError as error:
            if left < timeout and "timed out" in str(error):  # it had less than it may take: it did not fail
                raise OutOfTime from error
            raise
        opened += 1
        first_batches.append(trial.start_up)
        return trial

    searching = Search(
        present,
        bounds,
        open_trial,
        seconds=seconds,
        step=step,
        tell=None if tell is None else lambda search: tell(outcome(search, signs.keeps()), search),
        why_not=signs.why_not,
    )
    with SameRandom():
        searching.run()
    return outcome(searching, signs.keeps())


def _uses_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())


def _to_gpu(batch: Any) -> None:
    """As a training does: else pinned memory would only ever cost. The last copy is waited for."""
    import torch

    for _, tensor in tensors.plain_tensors(batch):
        tensor.to("cuda", non_blocking=True)
    torch.cuda.current_stream().synchronize()


def _measure_step(loader: Any, consume: Callable[[Any], object], seconds: float) -> Step | None:
    """What `consume` takes for a batch, over a few of them."""
    taken, batch, began = [], None, time.monotonic()
    with SameRandom():
        for batch in clone(loader, worker_settings.of_loader(loader).but(num_workers=0)):
            mark, busy = time.perf_counter(), time.process_time()
            consume(batch)
            wait_for_gpu()
            taken.append((time.perf_counter() - mark, time.process_time() - busy))
            if len(taken) >= MEASURED_BATCHES or (len(taken) >= 3 and time.monotonic() - began > seconds):
                break
    if not taken:
        return None
    usual = taken[1:] or taken  # the first one warms up
    compute, cpu = (sum(column) / len(usual) for column in zip(*usual, strict=True))
    return Step(compute, cpu, loader.batch_size or samples_in(batch))
