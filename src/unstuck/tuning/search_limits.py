"""What there is to search in: cores, memory, and what this script's workers may be."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..recorder import cores
from ..recorder.probes.data.sample_code import asks_its_worker
from ..takeover import import_safe
from .dataset_signs import changed_between_passes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .race import Candidate
    from .worker_settings import Settings

MOST_WORKERS = 64
MEMORY_SHARE = 0.7  # of the free memory that the workers of a candidate may take


@dataclass(frozen=True)
class Limits:
    cores: int
    most_workers: int
    gpu: bool = False
    room: int | None = None
    """Free bytes of shared memory."""
    length: int | None = None
    """Batches of a pass, where it is known."""
    memory: int | None = None
    """Bytes that may still be used."""
    process_bytes: int = 0
    """What a worker could need at most, as long as none is known: a copy of all that this process has."""
    no_workers: str = ""
    """Why no worker may be started at all, in sentences."""
    undivided: str = ""
    """Why the number of workers decides how many samples there are: more than one must stay as many."""
    not_persistent: str = ""
    """Why workers must not live on from pass to pass."""


def limits(loader: Any, present: Settings, gpu: bool) -> Limits:
    allowed = cores.whole()
    try:
        length: int | None = len(loader)
    except Exception:  # an iterable dataset, or a length that cannot be had
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
        room=room,
        length=length,
        memory=_free_memory(),
        process_bytes=_own_memory(),
        **_forbidden(loader, present),
    )


def _forbidden(loader: Any, present: Settings) -> dict[str, str]:
    """What must not be changed about the workers, and why."""
    kind = type(loader.dataset).__name__
    method = import_safe.start_method(present.start_method)
    why = {}
    if import_safe.runs_again(method):
        why["no_workers"] = (
            f"No worker was started: with the start method {method} each of them would run this script again, because "
            'its training does not begin under `if __name__ == "__main__":`.'
        )
    if not divides(loader):
        tried = "no other number of them was tried" if present.num_workers > 1 else "no more than one was tried"
        why["undivided"] = (
            f"{kind} does not ask which worker it is in (torch.utils.data.get_worker_info): each of several workers "
            f"gives all its samples, and {tried}."
        )
    changed = changed_between_passes(loader.dataset)
    if changed and not present.persistent_workers:
        why["not_persistent"] = (
            f"persistent_workers was not tried: the script sets {changed} of {kind} again and again, and workers that "
            "live on would not see it."
        )
    return why


def divides(loader: Any) -> bool:
    """More workers share the samples. An iterable dataset that does not ask which worker it is in gives all of them
    once a worker: it would look faster, and is not."""
    from torch.utils.data import IterableDataset, IterDataPipe

    if not isinstance(loader.dataset, IterableDataset) or isinstance(loader.dataset, IterDataPipe):
        return True
    return asks_its_worker(loader.dataset, loader.worker_init_fn)


def too_much(settings: Settings, limits: Limits, known: list[Candidate]) -> str:
    """Why these settings must not even be tried: what their batches and workers would take."""
    needed = settings.ahead * max(candidate.batch_bytes for candidate in known)
    if limits.room is not None and needed > limits.room // 2:
        return f"not measured: its batches would take {needed / 2**20:,.0f} MB of shared memory"
    worker = max(candidate.worker_bytes for candidate in known) or limits.process_bytes
    needed = settings.num_workers * worker
    if limits.memory is not None and needed > limits.memory * MEMORY_SHARE:
        return f"not measured: its workers could take {needed / 2**30:,.1f} GB of memory"
    return ""


def _free_memory() -> int | None:
    """Bytes that the machine and the cgroups around this process still have; None where nothing says so."""
    free = [kilobytes * 1024 for kilobytes in _numbers("/proc/meminfo", "MemAvailable:")]
    member = cores.cgroup_of("self", "memory")
    for folder in cores.cgroup_folders("memory", *member) if member else ():
        for names in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            limit, usage = (cores.read_text(f"{folder}/{name}").strip() for name in names)
            if limit.isdigit() and usage.isdigit():
                free.append(max(0, int(limit) - int(usage)))
    return min(free, default=None)


def _own_memory() -> int:
    """Bytes that this process has in memory and shares with no file."""
    return sum(_numbers("/proc/self/status", "RssAnon:")) * 1024


def _numbers(path: str, name: str) -> list[int]:
    lines = [line.split() for line in cores.read_text(path).splitlines() if line.startswith(name)]
    return [int(words[1]) for words in lines]
