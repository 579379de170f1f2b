"""Memory over time in a file beside the flight files: lines of words, written only where something changed.

boot ID · root PID · machine KILLS TOTAL · group N VERSION LIMIT KILLS PATH · in PID N
use N AT USAGE PEAK · rss PID AT RSS STEP
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.model import MemoryCurve, MemoryGroup
    from unstuck.observer.cgroups import Group

NAME = "memory.log"
CHANGED = 0.02
"""Share by which a number must have changed to be written again; it doubles with every so many lines."""
LINES = 2000


class MemoryFile:
    """Nothing but appends; a folder that cannot be written to costs this file and nothing else."""

    def __init__(self, folder: str | None, root: int, machine_kills: int, machine_total: int) -> None:
        self._path = None if folder is None else os.path.join(folder, NAME)
        self._lines = [f"boot {boot()}", f"root {root}", f"machine {machine_kills} {machine_total}"]
        self._written = 0
        self._last: dict[int | str, int] = {}
        self._numbers: dict[str, int] = {}

    def group(self, group: Group) -> None:
        number = self._numbers[group.path] = len(self._numbers)
        limit = "-" if group.limit is None else group.limit
        self._lines.append(f"group {number} {group.version} {limit} {group.kills_before} {group.path}")

    def member(self, pid: int, group: Group) -> None:
        self._lines.append(f"in {pid} {self._numbers[group.path]}")

    def rss(self, pid: int, at: float, rss: int, step: int) -> None:
        if self._changed(pid, rss):
            self._lines.append(f"rss {pid} {at:.2f} {rss} {step}")

    def use(self, group: Group, at: float) -> None:
        if self._changed(group.path, group.usage):
            self._lines.append(f"use {self._numbers[group.path]} {at:.2f} {group.usage} {group.peak}")

    def _changed(self, what: int | str, value: int) -> bool:
        before = self._last.get(what)
        share = CHANGED * 2 ** (self._written // LINES)
        if before is not None and abs(value - before) <= share * before:
            return False
        self._last[what] = value
        return True

    def flush(self) -> None:
        if not self._lines or self._path is None:
            return
        lines, self._lines = self._lines, []
        self._written += len(lines)
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            os.write(handle, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
        except OSError:
            pass
        finally:
            os.close(handle)


def boot() -> str:
    """Tells one start of a machine from any other."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return "?"


def read_back(folder: str) -> tuple[int | None, tuple[MemoryCurve, ...], tuple[MemoryGroup, ...]]:
    """Root, curves and groups from the file; a group's counter is read as it is now, if it is still there."""
    from unstuck.model import MemoryCurve, MemoryPoint

    try:
        with open(os.path.join(folder, NAME), encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.rstrip("\n") for line in file]
    except OSError:
        return None, (), ()
    root, here = None, False
    points: dict[int, list[MemoryPoint]] = {}
    groups: dict[str, dict[str, int | str | None]] = {}
    pids: dict[str, list[int]] = {}
    for line in lines:
        kind, _, rest = line.partition(" ")
        try:
            if kind == "boot":
                here = rest == boot()
            elif kind == "root":
                root = int(rest)
            elif kind == "machine":
                kills, total = rest.split()
                groups[""] = {"path": "", "version": 0, "limit": int(total), "kills_before": int(kills)}
            elif kind == "group":
                number, version, limit, kills, path = rest.split(" ", 4)
                narrow = None if limit == "-" else int(limit)
                groups[number] = {"path": path, "version": int(version), "limit": narrow, "kills_before": int(kills)}
            elif kind == "in":
                pid, number = rest.split()
                pids.setdefault(number, []).append(int(pid))
            elif kind == "use":
                number, _, usage, peak = rest.split()
                groups[number].update(usage=int(usage), peak=int(peak))
            elif kind == "rss":
                pid, at, rss, step = rest.split()
                points.setdefault(int(pid), []).append(MemoryPoint(float(at), int(rss), int(step)))
        except (ValueError, KeyError):
            continue  # half a line: it was killed while writing
    curves = tuple(MemoryCurve(pid, tuple(found)) for pid, found in points.items())
    pids[""] = sorted(points)
    return root, curves, tuple(_group(kept, tuple(pids.get(n, ())), here) for n, kept in groups.items())


def _group(kept: dict[str, int | str | None], pids: tuple[int, ...], here: bool) -> MemoryGroup:
    from unstuck.model import MemoryGroup
    from unstuck.observer import cgroups

    path, version = str(kept["path"]), int(kept["version"] or 0)
    kills = cgroups.UNREADABLE
    if here:
        kills = cgroups.machine_kills() if not version else cgroups.read_kills(path, version)
    return MemoryGroup(**kept, kills=kills, pids=pids)  # type: ignore[arg-type]  # as written above
