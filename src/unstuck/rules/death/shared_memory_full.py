"""shared-memory-full: /dev/shm had no space for a batch.

What it sees
    A worker died of SIGBUS while it put a batch into shared memory, or an exception says that shared memory could not
    be allocated, and /dev/shm is too small for the batches in flight.

Why it matters
    Workers hand batches over in /dev/shm. Its pages are only claimed when they are written; if there are none left, the
    kernel ends the writer with SIGBUS, which no `try` catches, and the run dies with it.

Evidence
    Size and use of /dev/shm measured in main at that moment, which process has how much of it, the bytes of a batch,
    and how much `num_workers × prefetch_factor` batches need.

Fix
    A larger /dev/shm (`docker run --shm-size=…`, with the number needed), or fewer or smaller batches in flight.

When it is wrong
    A SIGBUS can also come from a mapped file that was truncated: if /dev/shm had space, or the crash is in the user's
    own code, it is `native-crash`.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from unstuck.model import Case, Finding, Fix, Frame
from unstuck.recorder.records.deaths import Died, SampleFailed, SharedMemory
from unstuck.recorder.records.loaders import LoaderSettings
from unstuck.rules.death.post_mortem import (
    Death,
    WorkerEnd,
    at_line,
    crash_frames,
    death,
    exception_text,
    innermost,
    user_line,
    wants_shared_memory,
    with_causes,
)
from unstuck.rules.rule import Rule
from unstuck.rules.words import process_name, size

SHARING = (
    "torch/multiprocessing/reductions.py",
    "torch/storage.py",
    "torch/utils/data/_utils/collate.py",
    "multiprocessing/queues.py",
)
SMALL_BYTES = 128 << 20  # a container's default is 64 MB


@dataclass(frozen=True)
class Need:
    """Batches that may be in shared memory at once."""

    batch: int  # bytes; 0: not known
    workers: int
    prefetched: int  # by each worker

    @property
    def batches(self) -> int:
        return self.workers * self.prefetched + 1

    @property
    def bytes(self) -> int:
        return self.batch * self.batches

    def exceeds(self, shm: SharedMemory) -> bool:
        return shm.full or shm.free < self.batch or shm.size < self.bytes


@dataclass(frozen=True)
class Shortage:
    failed: Died | SampleFailed | WorkerEnd
    shm: SharedMemory
    need: Need
    confidence: float


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    short = _shortage(end) if end is not None else None
    if end is None or short is None:
        return
    failed, shm, need, settings = short.failed, short.shm, short.need, _settings(end)
    site = Frame(*settings.site, user=True) if settings.site else None  # nearest to num_workers and batch_size
    if isinstance(failed, WorkerEnd):
        happened = f"{failed.name} died of SIGBUS while it wrote to shared memory"
        line = next((frame for frame in crash_frames(failed.flight) if frame.user), site)
        where = end.where(line, None, failed)
    else:
        happened = f"`{exception_text(failed.raised)}` in {process_name(case, failed.pid)}"
        line = user_line(*with_causes(failed.raised)) or site
        where = end.where(line, failed)
    users = [f"{process_name(case, pid)} {size(used)}" for pid, used in shm.users]
    yield RULE.finding(
        severity="error",
        confidence=short.confidence,
        title=f"shared memory is full: /dev/shm has {size(shm.size)}"
        + (f", the batches in flight need {size(need.bytes)}" if need.bytes > shm.size else ""),
        evidence=(
            happened,
            f"/dev/shm had {size(shm.free)} of {size(shm.size)} free at that moment",
            "mapped of it: " + ", ".join(users[:6]) if users else "",
            f"a batch takes {size(need.batch)}; {need.workers} workers × {need.prefetched} prefetched and the one in "
            f"use are {need.batches}, {size(need.bytes)} in total"
            if need.batch
            else "",
            end.progress(),
        ),
        where=where,
        fix=_fix(need, shm.size),
        seen_by="kernel" if isinstance(failed, WorkerEnd) else "exit",
        also=(at_line(site),) if site is not None and site != line else (),
    )


def _shortage(end: Death) -> Shortage | None:
    need = _need(end, None)
    for failed in (end.sample, end.died):
        if failed is not None and _says_so(failed, need):
            return Shortage(failed, _shared_memory(end, failed), need, 0.97)
    worker = next((worker for worker in end.fallen if worker.signal == "SIGBUS"), None)
    if worker is None:
        return None
    need, shm, sharing = _need(end, worker), _shared_memory(end, None), _in_sharing(worker)
    known = bool(need.batch and shm.size)
    if sharing is False and not (shm.full or (known and shm.free < need.batch)):
        return None
    if shm.full or (known and need.exceeds(shm)):
        return Shortage(worker, shm, need, 0.97 if sharing else 0.85)
    if sharing and not known and 0 < shm.size <= SMALL_BYTES:
        return Shortage(worker, shm, need, 0.7)
    return None


def _says_so(failed: Died | SampleFailed, need: Need) -> bool:
    """No space, and it was for shared memory. torch's own error has no errno: there the space left decides."""
    shm = failed.measured.shared_memory
    for raised in with_causes(failed.raised):
        if raised.errno == errno.ENOSPC and wants_shared_memory(failed):
            return True
        inner = innermost(raised)
        sharing = inner is not None and inner.file.endswith(SHARING[:2]) and raised.type in ("RuntimeError", "OSError")
        if sharing and shm is not None and need.exceeds(shm):
            return True
    return False


def _in_sharing(worker: WorkerEnd) -> bool | None:
    """The crash happened where torch shares tensors, not in code that the user's calls. None: it left no stack."""
    frames = crash_frames(worker.flight)
    inner = takewhile(lambda frame: not frame.user, frames)
    return any(frame.file.endswith(SHARING) for frame in inner) if frames else None


def _shared_memory(end: Death, failed: Died | SampleFailed | None) -> SharedMemory:
    measured = (each.measured.shared_memory for each in (failed, end.batch, end.died) if each is not None)
    return next((shm for shm in measured if shm is not None), SharedMemory())


def _settings(end: Death) -> LoaderSettings:
    own = [loader for loader in end.case.loaders if loader.pid == end.pid and loader.num_workers]
    return own[-1] if own else LoaderSettings()


def _need(end: Death, worker: WorkerEnd | None) -> Need:
    own = worker.flight.batch_bytes if worker is not None and worker.flight is not None else 0
    largest = max((flight.batch_bytes for flight in end.case.flights if flight.role == "worker"), default=0)
    settings = _settings(end)
    return Need(own or largest, settings.num_workers or 1, settings.prefetch_factor or 2)


def _fix(need: Need, total: int) -> str | Fix:
    if not need.batch:
        return (
            "Give the container more shared memory (`docker run --shm-size=2g`, `--ipc=host`), or keep less in flight: "
            "fewer workers, smaller batches."
        )
    wanted = _size_flag(max(1.5 * need.bytes, 2 * total if need.bytes <= total else 0))
    return Fix(
        f"Give it at least {size(need.bytes)} of shared memory: `docker run --shm-size={wanted}` (or "
        f"`mount -o remount,size={wanted} /dev/shm`); or lower num_workers, prefetch_factor or batch_size.",
        setting="prefetching",
    )


def _size_flag(value: float) -> str:
    """Rounded up to a power of two: 64m, 2g."""
    megabytes = max(64, 2 ** math.ceil(math.log2(max(value, 1) / 2**20)))
    return f"{megabytes // 1024}g" if megabytes >= 1024 else f"{megabytes}m"


RULE = Rule("shared-memory-full", "death", decide, explains=frozenset({"native-crash", "sample-raises"}))
