"""Python processes of the run that are not recorded: each command is named once, if it stays.

Light: a walk over the tree now and then, so rarely that it costs next to nothing.
"""

from __future__ import annotations

import os
import time

from unstuck.observer.gauge import stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.supervise.flight_folder import FlightFolder

MIN_SECONDS = 3.0  # what ends sooner is no training
MIN_GAP, MAX_SHARE = 1.5, 0.002  # seconds between two walks, and the share of the time that walks may take
MAX_COMMANDS = 5
TEXT_LENGTH = 120
TICKS = os.sysconf("SC_CLK_TCK")
FLAGS = "its flags (-E, -I or -S), or a Python before 3.10, keep unstuck out"
CLEANED = "it was started with an environment of its own"


class Unrecorded:
    """The tree below `root`, and what was said of it."""

    def __init__(self, root: int, flights: FlightFolder) -> None:
        self.root, self.flights = root, flights
        self._next = 0.0
        self._since: dict[tuple[int, int, bytes], float] = {}
        """When a process was first seen without a file of the program that it is now."""
        self._commands: set[bytes] = set()

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

    def _look(self, pid: int, now: float, before: dict[tuple[int, int, bytes], float]) -> str:
        fields = stat_fields(pid)
        if not fields or fields[0] in (b"Z", b"X") or not _is_python(pid) or _is_mere_copy(fields):
            return ""
        started = int(fields[19])
        key = (pid, started, fields[25])
        first = self._since[key] = before.get(key, now)
        gauge = self.flights.gauge_of(pid)
        if gauge is None or gauge.key != (pid, started):  # else it was recorded until an exec, nobody knows when
            first = min(first, now - (time.clock_gettime(time.CLOCK_BOOTTIME) - started / TICKS))
        command = _read(f"/proc/{pid}/cmdline")
        if now - first < MIN_SECONDS or not command or command in self._commands or len(self._commands) >= MAX_COMMANDS:
            return ""
        folder = _variable(_read(f"/proc/{pid}/environ"), b"UNSTUCK_FLIGHT_DIR=")
        if folder and folder != os.fsencode(self.flights.folder or ""):
            return ""  # recorded by another run of ours
        self._commands.add(command)
        return f"process {pid} ({_text(command)}) is not recorded: {FLAGS if folder else CLEANED}; it is not watched"


def _is_mere_copy(fields: list[bytes]) -> bool:
    """A fork of its parent without an exec: what can be said was said of that one."""
    parent = stat_fields(int(fields[1]))
    return bool(parent) and parent[25] == fields[25] != b"0"


def _is_python(pid: int) -> bool:
    from unstuck.observer.tree import PYTHON

    try:
        return PYTHON.match(os.path.basename(os.readlink(f"/proc/{pid}/exe"))) is not None
    except OSError:
        return False


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 16)
    except OSError:
        return b""


def _variable(environment: bytes, name: bytes) -> bytes:
    return next((entry[len(name) :] for entry in environment.split(b"\0") if entry.startswith(name)), b"")


def _text(command: bytes) -> str:
    import shlex

    words = shlex.join(word.decode(errors="replace") for word in command.rstrip(b"\0").split(b"\0"))
    words = " ".join(words.split())
    return words if len(words) <= TEXT_LENGTH else words[: TEXT_LENGTH - 1] + "…"
