"""A memory cgroup of one's own, for tests of what happens at a limit."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from unstuck.observer import cgroups


class MemoryGroup:
    """A folder below the cgroup that the tests run in, v1 or v2."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder, self.version = folder, version

    def enter(self) -> None:
        """In a child, before it starts."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    @property
    def kills(self) -> int:
        return cgroups.read_kills(str(self.folder), self.version)

    def remove(self, patience: float = 5.0) -> None:
        """End what is left in it, then take it away."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            for pid in (self.folder / "cgroup.procs").read_text().split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.1)


def make(limit: int) -> MemoryGroup | None:
    """One with this limit in bytes; None where that is not allowed."""
    member = cgroups.membership(os.getpid())
    for place in cgroups.folders(*member) if member else []:
        folder = Path(place) / f"unstuck-test-{os.getpid()}-{time.monotonic_ns()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / ("memory.limit_in_bytes" if member and member[0] == 1 else "memory.max")).write_text(str(limit))
            (folder / "cgroup.procs").read_text()
            return MemoryGroup(folder, member[0] if member else 0)
        except OSError:
            folder.rmdir()
    return None
