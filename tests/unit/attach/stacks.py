"""Short ways to make the frames, threads, processes and looks of these tests."""

from __future__ import annotations

from typing import Any

from unstuck.model import Case, Frame, Look, Process, Thread, Times, Wait

SITE = "/venv/lib/python3.11/site-packages/"
LOADER = SITE + "torch/utils/data/dataloader.py"
FETCH = SITE + "torch/utils/data/_utils/fetch.py"
WORKER = SITE + "torch/utils/data/_utils/worker.py"


def frame(file: str, function: str, line: int = 1, **more: Any) -> Frame:
    return Frame(file, line, function, user=file.startswith("/home/me/"), **more)


USER = frame("/home/me/train.py", "main", 40)


def thread(*frames: Frame, kind: str = "running", tid: int = 1, **more: Any) -> Thread:
    wait = more.pop("wait", None) or Wait(kind)  # type: ignore[arg-type]
    return Thread(tid, state="R" if kind == "running" else "S", python=True, frames=frames, wait=wait, **more)


def worker_frames(index: int | None, batch: int, *, worker: int = 0, count: int = 2, code: str = "") -> list[Frame]:
    """Innermost first: the comprehension, fetch, the worker loop."""
    inner = [frame(FETCH, "fetch.<locals>.<listcomp>", 54, arguments=(("idx", str(index)),))] if index else []
    fetch = frame(
        FETCH, "_MapDatasetFetcher.fetch", 54, code=code, arguments=(("possibly_batched_index", "[4, 5, 6]"),)
    )
    numbers = (("worker_id", str(worker)), ("num_workers", str(count)), ("idx", str(batch)))
    return [*inner, fetch, frame(WORKER, "_worker_loop", 374, arguments=numbers)]


IDLE = frame(WORKER, "_worker_loop", 330, arguments=(("worker_id", "1"), ("num_workers", "2")))
WAITS = frame(LOADER, "_MultiProcessingDataLoaderIter._next_data", 1505, arguments=(("worker_id", "0"),))
POLLS = frame("/usr/lib/python3.11/selectors.py", "_PollLikeSelector.select", 415)


def process(pid: int, *threads: Thread, role: str = "main", ppid: int = 0, **more: Any) -> Process:
    return Process(pid, ppid, role=role, is_python=True, threads=threads, stacks_by="py-spy", **more)  # type: ignore[arg-type]


def look(at: float, *processes: Process) -> Look:
    return Look(at, processes, stacks=True)


def case(*looks: Look, **more: Any) -> Case:
    return Case(looks=looks, now=looks[-1].at, asked=True, times=Times(), **more)
