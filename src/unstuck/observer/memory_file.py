"""Memory over time in a file next to the flight files: lines of words, written only where something changed.

boot ID · root PID · machine KILLS TOTAL · group N VERSION LIMIT KILLS PATH · in PID N
use N AT USAGE PEAK · rss PID AT RSS STEP
"""

from __future__ import annotations

import os

from unstuck.recorder.cores import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.model import MemoryCurve, MemoryGroup
    from unstuck.observer.cgroups import Group

NAME = "memory.log"
MIN_CHANGE = 0.02  # share by which a number must have changed to be written again;
LINES_PER_DOUBLING = 2000  # it doubles with every so many lines


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
        share = MIN_CHANGE * 2 ** (self._written // LINES_PER_DOUBLING)
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
    return read_text("/proc/sys/kernel/random/boot_id").strip() or "?"


def read_back(folder: str) -> tuple[int | None, tuple[MemoryCurve, ...], tuple[MemoryGroup, ...]]:
    """Root, curves and groups from the file; a group's counter is read as it is now, if it is still there."""
    from dataclasses import replace

    from unstuck.model import MemoryCurve, MemoryGroup, MemoryPoint
    from unstuck.observer import cgroups

    root, same_boot = None, False
    points: dict[int, list[MemoryPoint]] = {}
    groups: dict[str, MemoryGroup] = {}
    pids: dict[str, list[int]] = {}
    for line in read_text(os.path.join(folder, NAME)).split("\n"):
        try:
            match line.split(" "):
                case ["boot", start]:
                    same_boot = start == boot()
                case ["root", pid]:
                    root = int(pid)
                case ["machine", kills, total]:
                    groups[""] = MemoryGroup("", 0, int(total), kills_before=int(kills))
                case ["group", number, version, limit, kills, *words]:
                    narrow = None if limit == "-" else int(limit)
                    groups[number] = MemoryGroup(" ".join(words), int(version), narrow, kills_before=int(kills))
                case ["in", pid, number]:
                    pids.setdefault(number, []).append(int(pid))
                case ["use", number, _, usage, peak]:
                    groups[number] = replace(groups[number], usage=int(usage), peak=int(peak))
                case ["rss", pid, at, rss, step]:
                    points.setdefault(int(pid), []).append(MemoryPoint(float(at), int(rss), int(step)))
        except (ValueError, KeyError):
            continue  # half a line: it was killed while writing
    pids[""] = sorted(points)
    for number, group in groups.items():
        kills_now = cgroups.UNREADABLE
        if same_boot:
            kills_now = cgroups.read_kills(group.path, group.version) if group.version else cgroups.machine_kills()
        groups[number] = replace(group, kills=kills_now, pids=tuple(pids.get(number, ())))
    curves = tuple(MemoryCurve(pid, tuple(of_pid)) for pid, of_pid in points.items())
    return root, curves, tuple(groups.values())
