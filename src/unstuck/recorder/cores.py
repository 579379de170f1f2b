"""Processors that a process may really use: its affinity and the quotas of the cgroups around it. The one place."""

from __future__ import annotations

import os


def allowed(pid: int = 0) -> float:
    """Processors it may keep busy at once; 0 is this process."""
    try:
        mine = len(os.sched_getaffinity(pid))
    except (AttributeError, OSError):
        mine = os.cpu_count() or 1
    limit = quota(pid)
    return float(mine) if limit is None else min(float(mine), limit)


def whole(pid: int = 0) -> int:
    """The same as a number of workers or threads: at least one; a quota of two and a half counts as three."""
    return max(1, int(allowed(pid) + 0.99))


def quota(pid: int = 0, root: str = "") -> float | None:
    """Processors' worth of time that the cgroups allow, v1 or v2, the tightest on the way up; None: no limit."""
    found = []
    for line in _text(f"{root}/proc/{pid or 'self'}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for point in _mounted(controllers, root):
            found += [limit for folder in _upwards(point, path) if (limit := _limit(folder)) is not None]
    return min(found, default=None)


def _limit(folder: str) -> float | None:
    words = _text(f"{folder}/cpu.max").split()
    if len(words) != 2:
        words = [_text(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    if not all(word.isdigit() and int(word) for word in words):
        return None
    return int(words[0]) / int(words[1])


def _mounted(controllers: str, root: str) -> list[str]:
    """Where the hierarchy is mounted; where the kernel does not say, its usual place."""
    points = []
    for line in _text(f"{root}/proc/self/mounts").splitlines():
        _, point, kind, options, *_ = line.split(" ")
        if kind == ("cgroup" if controllers else "cgroup2") and (not controllers or "cpu" in options.split(",")):
            points.append(root + point)
    return points or [f"{root}/sys/fs/cgroup" + (f"/{controllers}" if controllers else "")]


def _upwards(base: str, path: str) -> list[str]:
    """The folder of a cgroup and those around it; in a container only the last may be there."""
    folders = []
    while path not in ("", "/"):
        folders.append(base + path)
        path = os.path.dirname(path)
    return [*folders, base]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
