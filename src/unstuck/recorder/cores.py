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
    member = cgroup_of(pid or "self", "cpu", root)
    folders = cgroup_folders("cpu", *member, root) if member else []
    return min((limit for folder in folders if (limit := _limit(folder)) is not None), default=None)


def _limit(folder: str) -> float | None:
    words = read_text(f"{folder}/cpu.max").split()
    if len(words) != 2:
        words = [read_text(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    if not all(word.isdigit() and int(word) for word in words):
        return None
    return int(words[0]) / int(words[1])


def cgroup_of(pid: int | str, controller: str, root: str = "") -> tuple[int, str] | None:
    """Version of the cgroup that limits a process by this controller, and its path inside the hierarchy."""
    unified = None
    for line in read_text(f"{root}/proc/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return 1, path
        if not controllers:
            unified = 2, path
    return unified


def cgroup_folders(controller: str, version: int, path: str, root: str = "") -> list[str]:
    """Folders of a cgroup and of those around it, the innermost first, as far as they can be seen from here."""
    point, inside = _mounted(controller, version, path, root)
    folders = []
    while point:
        folder = root + point + inside.rstrip("/")
        if os.path.isdir(folder):
            folders.append(folder)
        if inside in ("", "/"):
            break
        inside = os.path.dirname(inside)
    return folders


def _mounted(controller: str, version: int, path: str, root: str) -> tuple[str, str]:
    """Where the hierarchy is mounted, and the path below that: in a container only a part of it may be."""
    best = ("", "")
    for line in read_text(f"{root}/proc/self/mountinfo").splitlines():
        words, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        if kind != ("cgroup" if version == 1 else "cgroup2") or (version == 1 and controller not in options.split(",")):
            continue
        top, point = words.split(" ")[3:5]
        if top == "/" or path == top or path.startswith(top + "/"):
            return point, path if top == "/" else path[len(top) :]
        best = (point, "")  # its own cgroup is what is mounted
    return best


def read_text(path: str) -> str:
    """Empty where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""
