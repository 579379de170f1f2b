"""Memory a process may still take, and has: the machine's and that of the cgroups around it. Light: os alone."""

from __future__ import annotations

import os

from ..observer import cgroups


def free() -> int | None:
    """Bytes; None where nothing says so."""
    total, used = cgroups.machine_memory()
    found = [total - used] if total else []
    member = cgroups.membership(os.getpid())
    for folder in cgroups.folders(*member) if member else ():
        group = cgroups.Group(folder, member[0] if member else 2)
        if group.limit is not None:
            found.append(max(0, group.limit - group.usage))
    return min(found, default=None)


def own() -> int:
    """Bytes that this process has in memory and shares with no file."""
    try:
        with open("/proc/self/status", "rb") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"RssAnon:"))
    except (OSError, ValueError, IndexError):
        return 0
