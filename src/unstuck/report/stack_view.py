"""Stacks of a run as plain data for a page: processes that findings name first, and frames of the user's."""

from __future__ import annotations

from typing import Any

from unstuck.model import Case, Finding, Frame, Process, Thread
from unstuck.report.json_report import relative

MAX_PROCESSES, MAX_THREADS, MAX_FRAMES = 24, 6, 40
MAX_LINE = 900  # characters: a name can be of any length

Plain = dict[str, Any]


def cut(text: str, most: int = MAX_LINE) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def stacks(case: Case, findings: list[Finding]) -> list[Plain]:
    """Of the last look that has any: the processes that findings name first."""
    look = next((look for look in reversed(case.looks) if look.stacks), None)
    if look is None:
        return []
    named = {where.pid for finding in findings for where in (finding.where, *finding.also)}
    shown = [process for process in look.processes if any(thread.frames for thread in process.threads)]
    shown.sort(key=lambda process: process.pid not in named)
    return [_process(case, process, process.pid in named) for process in shown[:MAX_PROCESSES]]


def _process(case: Case, process: Process, named: bool) -> Plain:
    numbers = {"rank": process.rank, "worker": process.worker}
    who = [f"{name} {value}" for name, value in numbers.items() if value is not None]
    threads = sorted((t for t in process.threads if t.frames), key=lambda thread: thread.user_frame is None)
    return {
        "name": ", ".join(who) or (process.role if process.role != "unknown" else "process"),
        "pid": process.pid,
        "named": named,
        "seen_by": process.stacks_by,
        "threads": [_thread(case, thread) for thread in threads[:MAX_THREADS]],
        "more": max(0, len(threads) - MAX_THREADS),
    }


def _thread(case: Case, thread: Thread) -> Plain:
    frames = thread.frames[:MAX_FRAMES]
    wait = thread.wait
    waits = "" if wait is None else wait.kind if wait.kind == "running" else f"waits: {wait.kind} {wait.target}"
    return {
        "name": cut(thread.name or str(thread.tid)),
        "waits": cut(waits.strip()),
        "user": [_frame(case, frame) for frame in frames if frame.user],
        "all": [_frame(case, frame) for frame in frames],
    }


def _frame(case: Case, frame: Frame) -> list[Any]:
    file = relative(frame.file, case.cwd) or frame.file
    return [f"{cut(file)}:{frame.line}", cut(frame.function), cut(frame.code), frame.user]
