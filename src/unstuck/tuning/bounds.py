"""What there is to search in: cores, memory, and what this script's workers may be."""

from __future__ import annotations

import multiprocessing
import os

from ..recorder import cores
from ..recorder.probes.data.sample_code import asks_its_worker
from . import guard, memory
from .candidates import Limits
from .changing import changed_between_passes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .settings import Settings

MOST_WORKERS = 64


def limits(loader: Any, present: Settings, gpu: bool) -> Limits:
    allowed = cores.whole()
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
        **_said(loader, present),
    )


def _said(loader: Any, present: Settings) -> dict[str, str]:
    """What must not be changed about the workers, and why."""
    kind = type(loader.dataset).__name__
    method = guard.start_method(present.start_method)
    said = {}
    if guard.runs_again(method):
        said["no_workers"] = (
            f"No worker was started: with the start method {method} each of them would run this script again, for its "
            'training is not begun under `if __name__ == "__main__":`.'
        )
    if not divides(loader):
        tried = "no other number of them was tried" if present.num_workers > 1 else "no more than one was tried"
        said["undivided"] = (
            f"{kind} does not ask which worker it is in (torch.utils.data.get_worker_info): each of several workers "
            f"gives all its samples, and {tried}."
        )
    changed = changed_between_passes(loader.dataset)
    if changed and not present.persistent_workers:
        said["not_persistent"] = (
            f"persistent_workers was not tried: the script sets {changed} of {kind} again and again, and workers that "
            "live on would not see it."
        )
    return said


def divides(loader: Any) -> bool:
    """More workers share the samples. An iterable data set that does not ask which worker it is in gives all of them
    once a worker: it would look faster, and is not."""
    from torch.utils.data import IterableDataset, IterDataPipe

    if not isinstance(loader.dataset, IterableDataset) or isinstance(loader.dataset, IterDataPipe):
        return True
    return asks_its_worker(loader.dataset, loader.worker_init_fn)


def _methods() -> tuple[str, ...]:
    """Start methods that begin with a fresh interpreter: only for a script that can be imported without running."""
    known = multiprocessing.get_all_start_methods()
    return tuple(method for method in ("forkserver", "spawn") if method in known) if guard.is_guarded() else ()
