"""Plain words for findings: durations, places, processes."""

from __future__ import annotations

import os

from unstuck import text
from unstuck.model import Frame, Process
from unstuck.text import seconds as seconds


def place(frame: Frame | None) -> str:
    """data.py:31 in Shard.__getitem__"""
    if frame is None:
        return "an unknown place"
    return text.spot(frame.file, frame.line, frame.function)


def lines(span: tuple[int, int] | None) -> str:
    if span is None:
        return ""
    return f"line {span[0]}" if span[0] == span[1] else f"lines {span[0]}–{span[1]}"


def who(process: Process) -> str:
    """worker 1 (pid 77), the main process (pid 5), rank 0 (pid 9), `sh -c …` (pid 8)."""
    if process.role == "worker":
        number = "" if process.worker is None else f" {process.worker}"
        return f"worker{number} (pid {process.pid})"
    if process.role == "rank" and process.rank is not None:
        return f"rank {process.rank} (pid {process.pid})"
    if process.role == "main":
        return f"the main process (pid {process.pid})"
    return f"`{command(process)}` (pid {process.pid})"


def command(process: Process) -> str:
    words = [os.path.basename(process.command[0]), *process.command[1:]] if process.command else ["a process"]
    text = " ".join(" ".join(words).split())
    return shorten(text)


def shorten(text: str) -> str:
    """A command line, as much of it as a sentence bears."""
    return text if len(text) <= 60 else text[:57] + "…"
