"""Inside the script below `unstuck tune`: waits until the training loader is in use, measures it, waits to be ended.

The parent ends all processes from the top: one that started this one and saw it end would go on as if it had trained.
Until the loader is in use three seams look on: batches handed out, loaders built, backward passes. What is known goes
as JSON lines into a file in the folder given, which the parent follows.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
import time

from ..recorder import imports
from . import watching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .outcome import Tuned
    from .patience import Patience
    from .search import Search

EVENTS = "events.jsonl"
CLAIM = "claim"
LONGEST, FAILED = 30.0, 70
"""Seconds to wait for being ended; the status of a process that was not."""
PATIENCE_NAME = "UNSTUCK_TUNE_SECONDS"

_folder = ""


def start(folder: str) -> None:
    """Put the seams in place; `folder` is where to tell."""
    global _folder
    _folder = folder
    watching.ready = take_over
    watching.main = os.getppid() == _parent(folder)
    imports.when_imported("torch.utils.data.dataloader", watching.install)
    imports.when_imported("torchdata.stateful_dataloader.stateful_dataloader", watching.install_stateful)
    imports.when_imported("torch.autograd", watching.install_backward)
    imports.when_imported("torch.optim.optimizer", watching.install_optimizer)
    watching.first_used = _first_used
    watching.faulty = _faulty


def _parent(folder: str) -> int:
    try:
        return int(os.path.basename(folder).split("-")[1])
    except (IndexError, ValueError):
        return 0


def tell(event: str, **about: Any) -> None:
    line = (json.dumps({"event": event, "pid": os.getpid(), **about}) + "\n").encode()
    handle = os.open(os.path.join(_folder, EVENTS), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)


def _first_used() -> None:
    """A loader is in use. From here on the end of the script is a last chance: registered late, it comes early."""
    tell("used")
    atexit.register(_at_the_end)


def _faulty(fault: Exception) -> None:
    """The script goes on as it would without us; the parent says why nothing comes of it."""
    watching.remove()
    tell("fault", what=f"{type(fault).__name__}: {fault}")


def _at_the_end() -> None:
    """The script was over before enough was seen; an exception has come to the top if `last_value` is set."""
    used = watching.chosen()
    if used is not None and not hasattr(sys, "last_value") and os.getpid() == watching.pid:
        take_over(used)


def take_over(used: watching.Used) -> None:
    """Measure this loader and end the process. Returns only if another process of the script does so already."""
    try:
        os.close(os.open(os.path.join(_folder, CLAIM), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        watching.remove()
        return
    said: dict[str, Any] = {}
    try:
        watching.remove()
        _silence()
        said = {"event": "done", "tuned": _measure(used).plain()}
    except BaseException as fault:
        import traceback

        what = f"{type(fault).__name__}: {fault}"
        said = {"event": "fault", "what": what, "traceback": traceback.format_exc(), "last": True}
    finally:
        _end(said)


def _measure(used: watching.Used) -> Tuned:
    from . import session
    from .patience import Patience

    patience = Patience()
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if threading.current_thread() is threading.main_thread() and not ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the script's own handler is over too
    _dismiss(used)
    step = used.step()
    seconds = float(os.environ.get(PATIENCE_NAME) or 60)
    tell(
        "found",
        site=used.site,
        built_by=type(used.loader).__name__,
        dataset=type(used.loader.dataset).__name__,
        batch_size=used.loader.batch_size,
        trains=used.trains,
        built=watching.built_at(used.site),
        loaders=watching.number(),
        step=None if step is None else vars(step),
        seconds=seconds,
    )
    _stop_when_told(patience)

    def progress(tuned: Any, search: Search) -> None:
        tell(
            "progress",
            elapsed=search.elapsed,
            now=search.races.now.settings.words(),
            best=search.best.settings.words(),
            rate=search.best.figures.rate,
            tuned=tuned.plain(),
        )

    return session.tune(used.loader, seconds=seconds, step=step, patience=patience, slowest=used.slowest, tell=progress)


def _stop_when_told(patience: Patience) -> None:
    """The parent may have been told to stop where the script was not: a file says so."""

    def look() -> None:
        while not os.path.exists(os.path.join(_folder, "stop")):
            time.sleep(0.1)
        patience.stopped = True

    threading.Thread(target=look, daemon=True).start()


def _silence() -> None:
    """What the script said until now is said; what its data set says while it is measured is nobody's business."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _dismiss(used: watching.Used) -> None:
    """The script's own workers have nothing to do any more, and would take the cores from those measured."""
    import multiprocessing

    for iterator in used.iterators():
        try:
            iterator._shutdown_workers()
        except Exception:
            pass  # they wait with full hands and do no harm
    for child in multiprocessing.active_children():
        child.join(0.05)


def _end(said: dict[str, Any]) -> None:
    """Nothing of the script runs any more, no checkpoint is written half-way. Told last, when all is put away: then the
    parent ends this process after those above it. Without a parent it ends as one that failed."""
    from multiprocessing import active_children, util

    signal.signal(signal.SIGCHLD, signal.SIG_DFL) if threading.current_thread() is threading.main_thread() else None
    try:
        for child in active_children():
            child.terminate()
        util._exit_function()  # type: ignore[attr-defined]  # else its semaphores would be reported as leaked
    finally:
        try:
            tell(**said)
            began = time.monotonic()
            while os.path.exists(_folder) and time.monotonic() - began < LONGEST:
                time.sleep(0.05)
        finally:
            os._exit(FAILED)
