"""Python processes of the run that are not recorded: each command is named once, if it stays.

Light: a walk over the tree now and then, so rarely that it costs next to nothing.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.observer.proc import Stat
    from unstuck.supervise.flight_folder import FlightFolder

    Program = tuple[int, int, tuple[int, int]]  # pid, start time, layout of its memory: another after an exec

MIN_SECONDS = 3.0  # what ends sooner is no training
MIN_GAP, MAX_SHARE = 1.5, 0.002  # seconds between two walks, and the share of the time that walks may take
MAX_COMMANDS = 5
TEXT_LENGTH = 120
FLAGS = "its flags (-E, -I or -S), or a Python before 3.10, keep unstuck out"
CLEANED = "it was started with an environment of its own"


class Unrecorded:
    """The tree below `root`, and what was said about it."""

    def __init__(self, root: int, flights: FlightFolder) -> None:
        self.root, self.flights = root, flights
        self._next = 0.0
        self._since: dict[Program, float] = {}
        """When a process was first seen without a file of the program that it is now."""
        self._commands: set[tuple[str, ...]] = set()

    def tick(self, now: float) -> dict[int, str]:
        """What there is to say now, by process."""
        self._next = self._next or now + MIN_SECONDS
        if now < self._next or self.flights.folder is None or len(self._commands) >= MAX_COMMANDS:
            return {}
        from unstuck.observer.tree import descendants

        began = time.thread_time()
        before, self._since = self._since, {}
        known = {os.getpid(), *(gauge.pid for gauge in self.flights.living)}
        pids = [pid for pid in (self.root, *descendants(self.root)) if pid not in known]
        found = {pid: line for pid in pids if (line := self._look(pid, now, before))}
        self._next = now + max(MIN_GAP, (time.thread_time() - began) / MAX_SHARE)
        return found

    def _look(self, pid: int, now: float, before: dict[Program, float]) -> str:
        from unstuck.observer import proc

        stat = proc.stat(pid)
        if stat is None or stat.state in "ZX" or not _is_python(pid) or _is_mere_copy(stat):
            return ""
        program = (pid, stat.started, stat.layout)
        first = self._since[program] = before.get(program, now)
        gauge = self.flights.gauge_of(pid)
        if gauge is None or gauge.key != (pid, stat.started):  # else it was recorded until an exec, nobody knows when
            first = min(first, now - (time.clock_gettime(time.CLOCK_BOOTTIME) - stat.started / proc.TICKS))
        command = proc.command(pid)
        if now - first < MIN_SECONDS or not command or command in self._commands or len(self._commands) >= MAX_COMMANDS:
            return ""
        folder = proc.environment(pid).get("UNSTUCK_FLIGHT_DIR", "")
        if folder and folder != self.flights.folder:
            return ""  # recorded by another run of ours
        self._commands.add(command)
        return f"process {pid} ({_text(command)}) is not recorded: {FLAGS if folder else CLEANED}; it is not watched"


def _is_mere_copy(stat: Stat) -> bool:
    """A fork of its parent without an exec: what can be said was said about that one."""
    from unstuck.observer import proc

    parent = proc.stat(stat.ppid)
    return parent is not None and parent.layout == stat.layout != (0, 0)


def _is_python(pid: int) -> bool:
    from unstuck.observer.proc import link
    from unstuck.observer.tree import PYTHON

    return PYTHON.match(os.path.basename(link(f"/proc/{pid}/exe"))) is not None


def _text(command: tuple[str, ...]) -> str:
    import shlex

    words = " ".join(shlex.join(command).split())
    return words if len(words) <= TEXT_LENGTH else words[: TEXT_LENGTH - 1] + "…"
