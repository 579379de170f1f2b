"""shared-memory-full: there was no room in /dev/shm for a batch.

What it sees
    A worker died of SIGBUS while it put a batch into shared memory, or an exception says that shared memory could
    not be had, and /dev/shm is too small for the batches in flight.

Why it matters
    Workers hand batches over in /dev/shm. The room is only claimed when it is written to; if there is none, the
    kernel ends the writer with SIGBUS, which no `try` catches.

Evidence
    Size and use of /dev/shm measured in main at that moment, who has how much of it, the bytes of a batch, and how
    much `num_workers × prefetch_factor` batches need.

Fix
    A larger /dev/shm (`docker run --shm-size=…`, with the number needed), or fewer or smaller batches in flight.

When it is wrong
    A SIGBUS can also come from a mapped file that was cut short: where /dev/shm had room, or the crash lies in the
    user's own code, it is `native-crash`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass

from unstuck.model import Case, Finding, Fix, Frame, Where
from unstuck.recorder.records.deaths import Died, SampleFailed, SharedMemory
from unstuck.recorder.records.loaders import LoaderSettings
from unstuck.rules.death.died import Death, WorkerEnd, death
from unstuck.rules.death.disk_full import SEMAPHORES, on_shm
from unstuck.rules.death.errors import inner_frame, passes, said, user_line, whole
from unstuck.rules.death.sizes import flag, size
from unstuck.rules.death.too_many_open_files import crowded
from unstuck.rules.rule import Rule

SHARING = (
    "torch/multiprocessing/reductions.py",
    "torch/storage.py",
    "torch/utils/data/_utils/collate.py",
    "multiprocessing/queues.py",
)
SMALL = 128 << 20  # a container's default is 64 MB


@dataclass(frozen=True)
class Shortage:
    worker: WorkerEnd | None
    failed: Died | SampleFailed | None
    shm: SharedMemory
    batch: int
    needed: int
    sure: float


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    short = shortage(end) if end is not None else None
    if end is None or short is None:
        return
    site = _loader_site(end)
    frame = _frame(short) or site
    total, free = short.shm.size, short.shm.free
    batches = _in_flight(end)
    if short.worker is not None:
        happened = f"{short.worker.who} died of SIGBUS while it wrote to shared memory"
    else:
        happened = f"`{said(short.failed.raised)}` in {_who(short.failed)}" if short.failed is not None else ""
    yield RULE.finding(
        severity="error",
        confidence=short.sure,
        title=f"shared memory is full: /dev/shm has {size(total)}"
        + (f", the batches in flight need {size(short.needed)}" if short.needed > total else ""),
        evidence=(
            happened,
            f"/dev/shm had {size(free)} of {size(total)} free at that moment",
            *_users(end, short.shm),
            *([f"a batch takes {size(short.batch)}; {batches}, {size(short.needed)} in all"] if short.batch else []),
            end.progress(),
        ),
        where=end.where(frame, short.failed, short.worker),
        fix=Fix(_fix(short, total)),
        seen_by="kernel" if short.worker is not None else "exit",
        also=(Where(site.file, site.line, site.function),) if site is not None and site != frame else (),
    )


def shortage(end: Death) -> Shortage | None:
    if crowded(end) is not None:
        return None
    for failed in (end.sample, end.died):
        batch, needed = _need(end, None)
        if failed is not None and _says_so(failed, batch, needed):
            return Shortage(None, failed, _shm(end, failed), batch, needed, 0.97)
    bus = next((w for w in end.fallen if w.signal == "SIGBUS"), None)
    if bus is None:
        return None
    shm = _shm(end, None)
    batch, needed = _need(end, bus)
    sharing, known = _in_sharing(bus), bool(batch and shm.size)
    if sharing is False and not (shm.full or (known and shm.free < batch)):
        return None
    if shm.full or (known and _tight(shm, batch, needed)):
        return Shortage(bus, None, shm, batch, needed, 0.97 if sharing else 0.85)
    if sharing and not known and shm.size and shm.size <= SMALL:
        return Shortage(bus, None, shm, batch, needed, 0.7)
    return None


def _tight(shm: SharedMemory, batch: int, needed: int) -> bool:
    return shm.full or shm.free < batch or shm.size < needed


def _says_so(failed: Died | SampleFailed, batch: int, needed: int) -> bool:
    """No room, and it was shared memory that was wanted. torch's own error has no number: there the room decides."""
    shm = failed.measured.shared_memory
    tight = shm is not None and _tight(shm, batch, needed)
    for each in whole(failed.raised):
        if each.errno == errno.ENOSPC and (on_shm(failed) or passes(each, *SEMAPHORES)):
            return True
        inner = inner_frame(each)
        sharing = inner is not None and inner.file.endswith(("multiprocessing/reductions.py", "torch/storage.py"))
        if sharing and each.type in ("RuntimeError", "OSError") and tight:
            return True
    return False


def _in_sharing(worker: WorkerEnd) -> bool | None:
    """The crash happened in torch's way of sharing, below no line of the user's. None: it left no stack."""
    crash = worker.flight.crash if worker.flight is not None else None
    frames = crash.thread.frames if crash is not None and crash.thread is not None else ()
    if not frames:
        return None
    inner: tuple[Frame, ...] = frames
    for depth, frame in enumerate(frames):
        if frame.user:
            inner = frames[:depth]
            break
    return any(f.file.endswith(SHARING) for f in inner)


def _shm(end: Death, failed: Died | SampleFailed | None) -> SharedMemory:
    measured = [each.measured.shared_memory for each in (failed, end.batch, end.died) if each is not None]
    return next((shm for shm in measured if shm is not None), SharedMemory())


def _settings(end: Death) -> LoaderSettings:
    told = [each for each in end.case.loaders if each.pid == end.pid and each.num_workers]
    return told[-1] if told else LoaderSettings()


def _need(end: Death, worker: WorkerEnd | None) -> tuple[int, int]:
    """Bytes of a batch, and of all that may be in flight."""
    own = worker.flight.batch_bytes if worker is not None and worker.flight is not None else 0
    sizes = [f.batch_bytes for f in end.case.flights if f.role == "worker"]
    batch = own or max(sizes, default=0)
    workers, ahead = _ahead(end)
    return batch, batch * (workers * ahead + 1)


def _ahead(end: Death) -> tuple[int, int]:
    """Workers, and batches that each has ready."""
    settings = _settings(end)
    return settings.num_workers or 1, settings.prefetch_factor or 2


def _in_flight(end: Death) -> str:
    workers, ahead = _ahead(end)
    return f"{workers} workers × {ahead} prefetched and the one in use are {workers * ahead + 1}"


def _who(failed: Died | SampleFailed) -> str:
    number = failed.in_work.worker if isinstance(failed, SampleFailed) else None
    return f"worker {number} (pid {failed.pid})" if number is not None else f"the main process (pid {failed.pid})"


def _users(end: Death, shm: SharedMemory) -> list[str]:
    if not shm.users:
        return []
    named = {exit_.pid: f"worker {exit_.worker}" for exit_ in (end.batch.workers if end.batch is not None else [])}
    named[end.pid] = "main"
    parts = [f"{named.get(pid, f'process {pid}')} {size(used)}" for pid, used in shm.users]
    return ["mapped of it: " + ", ".join(parts[:6])]


def _frame(short: Shortage) -> Frame | None:
    if short.failed is not None:
        return user_line(*whole(short.failed.raised))
    crash = short.worker.flight.crash if short.worker is not None and short.worker.flight is not None else None
    frames = crash.thread.frames if crash is not None and crash.thread is not None else ()
    return next((f for f in frames if f.user), None)


def _loader_site(end: Death) -> Frame | None:
    """Where the pass over the loader begins: the user's line nearest to num_workers and batch_size."""
    site = _settings(end).site
    return Frame(*site, user=True) if site else None


def _fix(short: Shortage, total: int) -> str:
    if not short.batch:
        return (
            "Give the container more shared memory (`docker run --shm-size=2g`, `--ipc=host`), or hand over less at a "
            "time: fewer workers, a smaller batch."
        )
    wanted = flag(max(1.5 * short.needed, 2 * total if short.needed <= total else 0))
    return (
        f"Give it at least {size(short.needed)} of shared memory: `docker run --shm-size={wanted}` (or "
        f"`mount -o remount,size={wanted} /dev/shm`); or lower num_workers, prefetch_factor or batch_size."
    )


RULE = Rule("shared-memory-full", "death", decide)
