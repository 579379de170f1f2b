"""One search over one loader, from the loader to what was found."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time

from ...record.dataset_state import names_read
from . import cores, memory, settings
from .clone import SameRandom
from .outcome import Row, Training, Tuned
from .search import CLEARLY, Limits, Search
from .trial import Patience, Trial, tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .search import Candidate
    from .settings import Settings
    from .step import Step

MOST_WORKERS = 64
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
    found_limits = limits(loader, gpu)
    first_batches = [slowest] if slowest else []
    opened = 0

    def open_trial(candidate: Settings) -> Trial:
        nonlocal opened
        timeout = max(AT_LEAST, 10 * max(first_batches)) if first_batches else FIRST_BATCH
        timeout += FRESH_START * (candidate.start_method in ("spawn", "forkserver"))
        trial = Trial(
            loader,
            candidate,
            timeout=min(timeout, max(AT_LEAST, seconds - search.elapsed)),
            patience=patience,
            take=_to_gpu if gpu else None,
            size=loader.batch_size,
            # Each begins at another place: else all but the first would read what is in memory already.
            skip=min(FURTHEST, int(opened * GOLDEN % 1 * 0.9 * (found_limits.length or 0))),
        )
        opened += 1
        first_batches.append(trial.start_up)
        return trial

    search = Search(
        settings.of(loader),
        found_limits,
        open_trial,
        seconds=seconds,
        step=step,
        tell=None if tell is None else lambda search: tell(found(search), search),
    )
    with SameRandom(), Attentive(patience):
        search.run()
    return found(search)


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


def limits(loader: Any, gpu: bool) -> Limits:
    allowed = cores.allowed()
    try:
        length: int | None = len(loader)
    except Exception:  # an iterable data set, or a length that cannot be had
        length = None
    try:
        status = os.statvfs("/dev/shm")
        room: int | None = status.f_bavail * status.f_frsize
    except OSError:
        room = None
    return Limits(
        cores=allowed,
        most_workers=max(int(loader.num_workers), min(MOST_WORKERS, 4 * allowed) if divides(loader) else 1),
        gpu=gpu,
        methods=_methods(),
        room=room,
        length=length,
        memory=memory.free(),
        process_bytes=memory.own(),
    )


def divides(loader: Any) -> bool:
    """More workers share the samples. An iterable data set that does not ask which worker it is in gives all of them
    once a worker: it would look faster, and is not."""
    from torch.utils.data import IterableDataset, IterDataPipe

    if not isinstance(loader.dataset, IterableDataset) or isinstance(loader.dataset, IterDataPipe):
        return True
    return loader.worker_init_fn is not None or "get_worker_info" in names_read(loader.dataset)


def _methods() -> tuple[str, ...]:
    """Start methods that begin with a fresh interpreter: only for a script that can be imported without running."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        with open(path or "", encoding="utf-8", errors="replace") as file:
            guarded = "__name__" in file.read()
    except OSError:
        guarded = False
    known = multiprocessing.get_all_start_methods()
    return tuple(method for method in ("forkserver", "spawn") if method in known) if guarded else ()


def _uses_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())


def _to_gpu(batch: Any) -> None:
    """As a training does: else pinned memory would only ever cost. The last copy is waited for."""
    import torch

    for tensor in tensors(batch):
        tensor.to("cuda", non_blocking=True)
    torch.cuda.current_stream().synchronize()


# --- what was found ------------------------------------------------------------------------------------------


def found(search: Search) -> Tuned:
    """What can be said by now; sensible also in the middle of a search."""
    present, best = search.present, search.best
    known = bool(present.slices and not present.error)
    keep, why = _verdict(search, known)
    chosen = present if keep else best
    given, before = chosen.settings.arguments(), present.settings.arguments()
    rate = chosen.figures.rate
    return Tuned(
        settings=given,
        changes=_changes(before, given),
        gain=_gain(search, chosen) if known and rate else 1.0,
        keep=keep,
        why=why,
        table=tuple(
            _row(each, search, chosen, known) for each in search.candidates.values() if each.slices or each.error
        ),
        training=_training(search, chosen) if known and rate else None,
        threads=chosen.settings.threads,
        seconds=round(search.elapsed, 3),
        interrupted=search.interrupted,
    )


def _verdict(search: Search, known: bool) -> tuple[bool, str]:
    present, best = search.present, search.best
    if not known:
        if best.error or not best.slices:
            return True, "Nothing could be measured." if best.error else "Nothing was measured yet."
        return False, f"The present settings fail ({present.error})."
    if best is present:
        if search.little_to_gain():
            return True, "Data do not limit the training: a faster loader would bring little or nothing."
        return True, "Nothing that was measured is better."
    if search.last is not None and search.last.ratios:
        gain, clear = search.last.ratio - 1, search.last.is_better()
    else:  # in the middle of the search
        gain = search.score(best) / search.score(present) - 1
        clear = search.scores(best)[0] > search.scores(present)[1]
    if gain < CLEARLY or not clear:
        return True, f"The best of the others ({best.settings.words()}) is not clearly better."
    if best.settings.num_workers > search.limits.cores:
        return False, f"More workers than the {search.limits.cores} cores help here (torch will warn of them)."
    return False, ""


def _changes(before: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What must be said differently; what torch takes by itself once there are workers need not be said."""
    changed = {name: value for name, value in given.items() if before.get(name) != value}
    if before["prefetch_factor"] is None and given["prefetch_factor"] == settings.DEFAULT_PREFETCH:
        del changed["prefetch_factor"]
    return changed


def _gain(search: Search, chosen: Candidate) -> float:
    if chosen is search.present:
        return 1.0
    if search.last is not None and search.last.rates:
        return search.last.gain
    return chosen.figures.rate / search.present.figures.rate


def _row(candidate: Candidate, search: Search, chosen: Candidate, known: bool) -> Row:
    figures = candidate.figures
    low, high = figures.interval()
    return Row(
        name=candidate.settings.words(search.present.settings.start_method),
        settings=candidate.settings.arguments(),
        samples_per_second=figures.rate,
        low=low,
        high=high,
        relative=figures.rate / search.present.figures.rate if known and figures.rate else None,
        start_up=candidate.start_up,
        error=candidate.error,
        present=candidate is search.present,
        chosen=candidate is chosen,
    )


def _training(search: Search, chosen: Candidate) -> Training | None:
    step = search.step
    if step is None:
        return None
    now, then = (step.batch / search.score(each) for each in (search.present, chosen))
    return Training(
        compute=step.compute,
        wait_now=max(0.0, now - step.compute),
        wait_then=max(0.0, then - step.compute),
        speedup=now / then,
        limited=then > step.compute * 1.05,
    )


def measure_step(loader: Any, consume: Callable[[Any], object], seconds: float) -> Step | None:
    """What `consume` takes for a batch, over a few of them."""
    from .clone import clone
    from .step import Step
    from .trial import count

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
