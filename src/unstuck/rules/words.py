"""Plain words for findings: durations, places, processes."""

from __future__ import annotations

import os
from itertools import pairwise

from unstuck import text
from unstuck.model import Case, Frame, Process
from unstuck.text import seconds as seconds
from unstuck.text import size as size

_POOL_LOOPS = {"multiprocessing/pool.py": "worker", "futures/process.py": "_process_worker"}


def sentence(text: str) -> str:
    """With a capital letter, unless it begins with a name from the code or a file."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0].isalpha() else text


def place(frame: Frame | None) -> str:
    """data.py:31 in Shard.__getitem__"""
    if frame is None:
        return "an unknown place"
    return text.spot(frame.file, frame.line, frame.function)


def loop_or_code(frame: Frame | None) -> str:
    """the loop in tokenize (data.py, lines 26–39); without a loop: the code at data.py:31 in tokenize."""
    if frame is None or frame.loop is None:
        return f"the code at {place(frame)}"
    inside = "" if frame.function in ("<module>", "") else f" in {frame.function}"
    return f"the loop{inside} ({os.path.basename(frame.file)}, {lines(frame.loop)})"


def lines(span: tuple[int, int] | None) -> str:
    if span is None:
        return ""
    return f"line {span[0]}" if span[0] == span[1] else f"lines {span[0]}–{span[1]}"


def who(process: Process) -> str:
    """worker 1 (pid 77), the main process (pid 5), rank 0 (pid 9), process `produce` (pid 7), `sh -c …` (pid 8)."""
    if process.role == "worker":
        number = "" if process.worker is None else f" {process.worker}"
        return f"worker{number} (pid {process.pid})"
    if process.role == "rank" and process.rank is not None:
        return f"rank {process.rank} (pid {process.pid})"
    target = started_function(process)
    if target:
        return f"process `{target}` (pid {process.pid})"
    if in_pool(process):
        return f"pool process (pid {process.pid})"
    if process.role == "main":
        return f"the main process (pid {process.pid})"
    return f"`{command(process)}` (pid {process.pid})"


def started_function(process: Process) -> str:
    """Name of the user's function that multiprocessing runs in a process; empty where there is none to see."""
    frames = process.main_thread.frames if process.main_thread else ()
    for inner, frame in pairwise(frames):
        if inner.user and frame.file.endswith("multiprocessing/process.py") and frame.function.endswith("run"):
            return inner.function
    return ""


def in_pool(process: Process) -> bool:
    """A worker of multiprocessing.Pool or ProcessPoolExecutor."""
    frames = process.main_thread.frames if process.main_thread else ()
    return any(f.function == _POOL_LOOPS.get("/".join(f.file.split("/")[-2:])) for f in frames if not f.user)


def process_name(case: Case, pid: int) -> str:
    """worker 1 (pid 77), rank 0 (pid 9), the main process (pid 5): by what the processes recorded."""
    flight = case.flight_of(pid)
    role, number = flight.role if flight is not None else "unknown", worker_number(case, pid)
    if number is not None or role == "worker":
        return f"worker {number} (pid {pid})" if number is not None else f"a worker (pid {pid})"
    if flight is not None and role == "rank" and flight.rank is not None:
        return f"rank {flight.rank} (pid {pid})"
    return f"the main process (pid {pid})" if pid == case.root or role in ("main", "rank") else f"process {pid}"


def worker_number(case: Case, pid: int) -> int | None:
    """Number of a DataLoader worker; None if the process is none, or nobody wrote its number down."""
    flight = case.flight_of(pid)
    if flight is not None and flight.worker is not None:
        return flight.worker
    for started in case.workers_started:
        if pid in started.pids:
            return started.pids.index(pid)
    ends = [*(failed.workers for failed in case.batches_failed), *(died.workers for died in case.deaths)]
    return next((exit_.worker for workers in ends for exit_ in workers if exit_.pid == pid), None)


def command(process: Process) -> str:
    words = [os.path.basename(process.command[0]), *process.command[1:]] if process.command else ["a process"]
    text = " ".join(" ".join(words).split())
    return shorten(text)


def shorten(text: str) -> str:
    """A command line, as much of it as a sentence bears."""
    return text if len(text) <= 60 else text[:57] + "…"
