"""Processes as the tests find them: any of them may end while it is looked at."""

from __future__ import annotations

import psutil


def running_below(pid: int) -> list[psutil.Process]:
    """All that descend from a process and have not ended, those it started itself first."""
    return [p for p in psutil.Process(pid).children(recursive=True) if words_of(p)]


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; nothing of one that has ended."""
    try:
        return [] if process.status() == psutil.STATUS_ZOMBIE else list(process.cmdline())
    except psutil.Error:
        return []


def variable_of(process: psutil.Process, name: str) -> str:
    """A variable of its environment; nothing of one that has ended or is somebody else's."""
    try:
        return "" if process.status() == psutil.STATUS_ZOMBIE else str(process.environ().get(name, ""))
    except (psutil.Error, OSError):
        return ""
