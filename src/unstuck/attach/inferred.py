"""Flights of processes that wrote none: role, phase, worker, batch and sample, read off the stacks of a look."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from unstuck.model import Flight, Frame, Look, Phase, Process, Thread
from unstuck.observer.torch_files import FETCH, LOADER, OPTIMIZER, SPAWN, WORKER, is_backward

_NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True)
class Seat:
    """Where a process is in its loader's work."""

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
    owed_by: int | None = None

    @property
    def identified(self) -> bool:
        """There is a number or a key that tells this work from the next."""
        known = self.sample is not None or bool(self.sample_key) or self.batch is not None
        return self.fetching and (known or any(letter.isdigit() for letter in self.indices))

    @property
    def sign(self) -> tuple[object, ...]:
        """Changes whenever the loader's work goes on."""
        return self.batch, self.indices, self.sample, self.sample_key, self.fetching, self.collating, self.owed_by


def seat_of(thread: Thread | None) -> Seat:
    """From the loader's own frames on a stack."""
    seat = Seat()
    if thread is None:
        return seat
    for depth, frame in enumerate(thread.frames):
        values = dict(frame.arguments)
        last = frame.function.rpartition(".")[2]
        if frame.file.endswith(FETCH):
            seat = replace(_in_fetch(seat, frame, values), fetching=True)
        elif frame.file.endswith(WORKER) and last.endswith("_worker_loop") and seat.worker is None:
            batch = _int(values, "idx")
            seat = replace(
                seat,
                worker=_int(values, "worker_id"),
                workers=_int(values, "num_workers"),
                batch=_int(values, "task_id") if batch is None else batch,
            )
        elif frame.file.endswith(LOADER) and last == "_next_data" and depth and not seat.fetching:
            seat = replace(seat, owed_by=_int(values, "worker_id"))
    # What was left in the frame of a batch that is done says nothing of the next.
    return seat if seat.fetching else replace(seat, batch=None)


def _in_fetch(seat: Seat, frame: Frame, values: dict[str, str]) -> Seat:
    indices = values.get("possibly_batched_index", seat.indices)
    own = values.get("idx", "")
    if "collate_fn(" in frame.code and not seat.sample_key and seat.sample is None:
        return replace(seat, indices=indices, collating=True)
    if not own:
        return replace(seat, indices=indices)
    if _NUMBER.fullmatch(own):
        return replace(seat, indices=indices, sample=int(own))
    return replace(seat, indices=indices, sample_key=own.strip("'\""))


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


def with_seats(look: Look) -> Look:
    """The look, with the numbers of workers and of `mp.spawn`'s ranks that only their frames know."""
    return replace(look, processes=tuple(_seated(process) for process in look.processes))


def _seated(process: Process) -> Process:
    changed: dict[str, Any] = {}
    if process.role == "worker" and process.worker is None:
        changed["worker"] = seat_of(process.main_thread).worker
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
    seat = seat_of(thread)
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
        batch=(seat.batch or 0),
        awaits_worker=seat.owed_by,
        forked=process.forked,
        fetching=seat.fetching,
        collating=seat.collating,
        sample=seat.sample,
        sample_key=seat.sample_key,
        sample_since=since if seat.fetching else 0.0,
    )
