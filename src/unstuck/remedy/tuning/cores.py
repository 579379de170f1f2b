"""Cores a process may really use: affinity and the quota of its cgroup. Light: os alone."""

from __future__ import annotations

import os


def allowed() -> int:
    """At least one; a quota of two and a half cores counts as three."""
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        cores = os.cpu_count() or 1
    share = quota()
    return cores if share is None else max(1, min(cores, int(share + 0.99)))


def quota(root: str = "") -> float | None:
    """Cores' worth of time that the cgroup allows, the tightest limit on the way up; None where there is none."""
    found = []
    for line in _text(f"{root}/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        base = f"{root}/sys/fs/cgroup" + (f"/{controllers}" if controllers else "")
        for folder in _upwards(base, path):
            words = _text(f"{folder}/cpu.max").split()
            if not words:
                words = [_text(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
            if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[0]) and int(words[1]):
                found.append(int(words[0]) / int(words[1]))
    return min(found, default=None)


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
