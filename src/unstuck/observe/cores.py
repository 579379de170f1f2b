"""Processors that a process may really use, and who keeps them busy: affinity, cgroup quotas, /proc/stat."""

from __future__ import annotations

import os

from . import proc

TICKS = os.sysconf("SC_CLK_TCK")


def allowed(pid: int) -> float:
    """Processors a process may keep busy at once."""
    try:
        mine = len(os.sched_getaffinity(pid))
    except OSError:
        mine = os.cpu_count() or 1
    limits = [quota(folder) for folder in _folders(pid)]
    return min([float(mine), *(limit for limit in limits if limit is not None)])


def quota(folder: str) -> float | None:
    """Processors that the cgroup of this folder allows, v1 or v2; None: as many as there are."""
    words = proc.maybe(f"{folder}/cpu.max").split()
    if len(words) != 2:
        words = [proc.maybe(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    if not all(word.isdigit() for word in words) or not int(words[1]):
        return None
    return int(words[0]) / int(words[1])


def _folders(pid: int) -> list[str]:
    """Folders of the cgroups around it that share out processor time, innermost first."""
    found = []
    for line in proc.maybe(f"/proc/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for point in _points(version=1 if controllers else 2):
            inside = path
            while True:
                found.append(point + inside.rstrip("/"))
                if inside in ("", "/"):
                    break
                inside = os.path.dirname(inside)
    return found


def _points(version: int) -> list[str]:
    points = []
    for line in proc.maybe("/proc/self/mounts").splitlines():
        _, point, kind, options, *_ = line.split(" ")
        if (version, kind) == (2, "cgroup2") or (version == 1 and kind == "cgroup" and "cpu" in options.split(",")):
            points.append(point)
    return points


def busy(pid: int) -> float:
    """Seconds that the processors it may run on have been busy since the machine was started, with anything."""
    try:
        mine = {f"cpu{number}" for number in os.sched_getaffinity(pid)}
    except OSError:
        return 0.0
    total = 0
    for line in proc.maybe("/proc/stat").splitlines():
        name, *fields = line.split()
        if name in mine:
            user, nice, system, _idle, _iowait, irq, soft, steal = (int(field) for field in fields[:8])
            total += user + nice + system + irq + soft + steal
    return total / TICKS


def delays(pid: int) -> tuple[float, float, dict[int, float]]:
    """Of a process: processor seconds, seconds its threads were ready without one, and the former by thread."""
    ran, ready, by_thread = 0.0, 0.0, {}
    try:
        tids = proc.numbers(f"/proc/{pid}/task")
    except OSError:
        return 0.0, 0.0, {}
    for tid in tids:
        words = proc.maybe(f"/proc/{pid}/task/{tid}/schedstat").split()
        if len(words) == 3:
            by_thread[tid] = int(words[0]) / 1e9
            ran += by_thread[tid]
            ready += int(words[1]) / 1e9
    return ran, ready, by_thread
