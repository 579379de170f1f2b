"""Flights of processes that wrote none: role, phase, worker, batch and sample, read off the stacks of a look."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from unstuck.model import Flight, Frame, Look, Phase, Process, Thread
from unstuck.observer.torch_files import FETCH, LOADER, OPTIMIZER, SPAWN, WORKER, is_backward
from unstuck.rules.hang.waiting import in_collective

_NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True)
class LoaderWork:
    """What a process does for its loader."""

    worker: int | None = None
    workers: int | None = None
    batch: int | None = None
    """Number of the batch in work within its pass; only a worker knows it."""
    indices: str = ""
    """The samples of the batch in work, as py-spy shows the list."""
    sample: int | None = None
    sample_key: str = ""
    fetching: bool = False
    collating: bool = False
    awaits_worker: int | None = None

    @property
    def identified(self) -> bool:
        """There is a number or a key that tells this work from the next."""
        known = self.sample is not None or bool(self.sample_key) or self.batch is not None
        return self.fetching and (known or any(letter.isdigit() for letter in self.indices))

    @property
    def identity(self) -> tuple[object, ...]:
        """Changes whenever the loader's work goes on."""
        return self.batch, self.indices, self.sample, self.sample_key, self.fetching, self.collating, self.awaits_worker


def loader_work(thread: Thread | None) -> LoaderWork:
    """From the loader's own frames on a stack."""
    work = LoaderWork()
    if thread is None:
        return work
    for depth, frame in enumerate(thread.frames):
        values = dict(frame.arguments)
        last = frame.function.rpartition(".")[2]
        if frame.file.endswith(FETCH):
            work = replace(_in_fetch(work, frame, values), fetching=True)
        elif frame.file.endswith(WORKER) and last.endswith("_worker_loop") and work.worker is None:
            batch = _int(values, "idx")
            work = replace(
                work,
                worker=_int(values, "worker_id"),
                workers=_int(values, "num_workers"),
                batch=_int(values, "task_id") if batch is None else batch,
            )
        elif frame.file.endswith(LOADER) and last == "_next_data" and depth and not work.fetching:
            work = replace(work, awaits_worker=_int(values, "worker_id"))
    # What was left in the frame of a batch that is done says nothing of the next.
    return work if work.fetching else replace(work, batch=None)


def _in_fetch(work: LoaderWork, frame: Frame, values: dict[str, str]) -> LoaderWork:
    indices = values.get("possibly_batched_index", work.indices)
    own = values.get("idx", "")
    if "collate_fn(" in frame.code and not work.sample_key and work.sample is None:
        return replace(work, indices=indices, collating=True)
    if not own:
        return replace(work, indices=indices)
    if _NUMBER.fullmatch(own):
        return replace(work, indices=indices, sample=int(own))
    return replace(work, indices=indices, sample_key=own.strip("'\""))


def _int(values: dict[str, str], name: str) -> int | None:
    value = values.get(name, "")
    return int(value) if _NUMBER.fullmatch(value) else None


def phase_of(thread: Thread | None, worker: bool) -> Phase:
    """The part of a step that the stack is in."""
    if thread is None:
        return "start"
    if worker:
        return "fetch" if any(frame.file.endswith(FETCH) for frame in thread.frames) else "idle"
    if any(frame.file.endswith(LOADER) for frame in thread.frames):
        return "data"
    if any(OPTIMIZER in frame.file for frame in thread.frames):
        return "optimizer"
    return "backward" if any(is_backward(frame) for frame in thread.frames) else "between"


def with_numbers(look: Look) -> Look:
    """The look, with the numbers of workers and of `mp.spawn`'s ranks that only their frames know. Of the processes
    that one program forked, all are ranks if one of them is in a collective."""
    forked = [p for p in look.processes if p.role == "unknown" and p.user_frame is not None]
    parents = {p.ppid for p in forked if p.main_thread is not None and in_collective(p.main_thread)}
    ranks = {p.pid for p in forked if p.ppid in parents}
    known = (replace(p, role="rank") if p.pid in ranks else p for p in look.processes)
    return replace(look, processes=tuple(_numbered(process) for process in known))


def _numbered(process: Process) -> Process:
    changed: dict[str, Any] = {}
    if process.role == "worker" and process.worker is None:
        changed["worker"] = loader_work(process.main_thread).worker
    if process.role == "rank" and process.rank is None and process.main_thread is not None:
        for frame in process.main_thread.frames:
            if frame.file.endswith(SPAWN):
                changed["rank"] = _int(dict(frame.arguments), "i")
    return replace(process, **changed) if changed else process


def flight_of(process: Process, now: float, since: float) -> Flight | None:
    """`since`: from when on it has been seen where it is."""
    thread = process.main_thread
    if not process.is_python or thread is None or not thread.frames:
        return None
    if process.role not in ("main", "rank", "worker"):
        return None
    work = loader_work(thread)
    return Flight(
        pid=process.pid,
        began=process.began,
        read_at=now,
        inferred=True,
        role=process.role,
        worker=process.worker,
        rank=process.rank,
        phase=phase_of(thread, process.role == "worker"),
        since=since,
        moved=since,
        batch=(work.batch or 0),
        awaits_worker=work.awaits_worker,
        forked=process.forked,
        fetching=work.fetching,
        collating=work.collating,
        sample=work.sample,
        sample_key=work.sample_key,
        sample_since=since if work.fetching else 0.0,
    )
