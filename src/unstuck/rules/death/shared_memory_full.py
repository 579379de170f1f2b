"""shared-memory-full: there was no room in /dev/shm for a batch.

What it sees
    A worker died of SIGBUS while it put a batch into shared memory, or an exception says that shared memory could
    not be had, and /dev/shm is too small for the batches in flight.

Why training stops
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
from typing import Any

from unstuck.model import Case, Finding, Fix, Frame, Where
from unstuck.rules.death.died import Death, WorkerEnd, death
from unstuck.rules.death.disk_full import SEMAPHORES, on_shm
from unstuck.rules.death.errors import Error
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
    error: Error | None
    shm: dict[str, Any]
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
    total, free = short.shm.get("size", 0), short.shm.get("free", 0)
    batches = _in_flight(end)
    if short.worker is not None:
        happened = f"{short.worker.who} died of SIGBUS while it wrote to shared memory"
    else:
        happened = f"`{short.error.said}` in {_who(short.error)}" if short.error is not None else ""
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
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
        where=_where(end, short, frame),
        fix=Fix(_fix(short, total)),
        seen_by="kernel" if short.worker is not None else "exit",
        also=(Where(site.file, site.line, site.function),) if site is not None and site != frame else (),
    )


def shortage(end: Death) -> Shortage | None:
    if crowded(end) is not None:
        return None
    for error in (end.sample, end.error):
        batch, needed = _need(end, None)
        if error is not None and _says_so(error, batch, needed):
            return Shortage(None, error, _shm(end, error), batch, needed, 0.97)
    bus = next((w for w in end.fallen if w.signal == "SIGBUS"), None)
    if bus is None:
        return None
    shm = _shm(end, None)
    batch, needed = _need(end, bus)
    total, free = shm.get("size", 0), shm.get("free", 0)
    sharing, known = _in_sharing(bus), bool(batch and total)
    tight = bool(shm.get("full")) or (known and (free < batch or total < needed))
    if sharing is False and not (shm.get("full") or (known and free < batch)):
        return None
    if tight:
        return Shortage(bus, None, shm, batch, needed, 0.97 if sharing else 0.85)
    if sharing and not known and total and total <= SMALL:
        return Shortage(bus, None, shm, batch, needed, 0.7)
    return None


def _says_so(error: Error, batch: int, needed: int) -> bool:
    """No room, and it was shared memory that was wanted. torch's own error has no number: there the room decides."""
    shm = error.measured.get("shared_memory") or {}
    tight = bool(shm) and (shm.get("full") or shm["free"] < batch or shm["size"] < needed)
    for each in error.whole:
        if each.errno == errno.ENOSPC and (on_shm(error) or each.passes(*SEMAPHORES)):
            return True
        sharing = bool(each.frames) and each.frames[0].file.endswith(
            ("multiprocessing/reductions.py", "torch/storage.py")
        )
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


def _shm(end: Death, error: Error | None) -> dict[str, Any]:
    for each in (error, end.batch, end.error):
        found = each.measured.get("shared_memory") if each is not None else None
        if found:
            return dict(found)
    return {}


def _settings(end: Death) -> dict[str, Any]:
    told = [f for f in end.case.facts if f.kind == "loader" and f.pid == end.pid and f.data.get("num_workers")]
    return told[-1].data if told else {}


def _need(end: Death, worker: WorkerEnd | None) -> tuple[int, int]:
    """Bytes of a batch, and of all that may be in flight."""
    own = worker.flight.batch_bytes if worker is not None and worker.flight is not None else 0
    sizes = [f.batch_bytes for f in end.case.flights if f.role == "worker"]
    batch = own or max(sizes, default=0)
    settings = _settings(end)
    workers, ahead = settings.get("num_workers") or 1, settings.get("prefetch_factor") or 2
    return batch, batch * (workers * ahead + 1)


def _in_flight(end: Death) -> str:
    settings = _settings(end)
    workers, ahead = settings.get("num_workers") or 1, settings.get("prefetch_factor") or 2
    return f"{workers} workers × {ahead} prefetched and the one in use are {workers * ahead + 1}"


def _who(error: Error) -> str:
    number = error.data.get("worker") if error.kind == "sample-failed" else None
    return f"worker {number} (pid {error.pid})" if number is not None else f"the main process (pid {error.pid})"


def _users(end: Death, shm: dict[str, Any]) -> list[str]:
    users = {pid: used for pid, used in (shm.get("users") or {}).items() if used}
    if not users:
        return []
    named = {
        str(w["pid"]): f"worker {w['worker']}" for w in (end.batch.data.get("workers") if end.batch else None) or ()
    }
    named[str(end.pid)] = "main"
    parts = [f"{named.get(pid, f'process {pid}')} {size(used)}" for pid, used in users.items()]
    return ["mapped of it: " + ", ".join(parts[:6])]


def _frame(short: Shortage) -> Frame | None:
    if short.error is not None:
        return next((e.user for e in short.error.whole if e.user is not None), None)
    crash = short.worker.flight.crash if short.worker is not None and short.worker.flight is not None else None
    frames = crash.thread.frames if crash is not None and crash.thread is not None else ()
    return next((f for f in frames if f.user), None)


def _loader_site(end: Death) -> Frame | None:
    """Where the pass over the loader begins: the user's line nearest to num_workers and batch_size."""
    site = _settings(end).get("site")
    return Frame(str(site[0]), int(site[1]), str(site[2]), user=True) if site else None


def _where(end: Death, short: Shortage, frame: Frame | None) -> Where:
    return end.where(frame, short.error, short.worker)


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
