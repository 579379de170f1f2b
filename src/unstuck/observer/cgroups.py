"""The memory cgroups around a process, v1 and v2: their limits, usage and counters of OOM kills. Light: os alone."""

from __future__ import annotations

from unstuck.recorder.cores import cgroup_folders, cgroup_of, read_text

UNLIMITED = 1 << 60  # v1 writes a number near 2**63 where there is no limit
UNREADABLE = -1
_FILES = {  # by version
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"),
    2: ("memory.max", "memory.current", "memory.peak", "memory.events"),
}


class Group:
    """One memory cgroup; `limit` is None where it has none of its own."""

    __slots__ = ("_peak_before", "kills_before", "limit", "path", "peak", "usage", "version")

    def __init__(self, path: str, version: int) -> None:
        self.path, self.version = path, version
        self.limit = read_limit(path, version)
        self.kills_before = read_kills(path, version)
        self._peak_before = self._kernel_peak()
        self.usage = self.peak = 0
        self.read()

    def read(self) -> None:
        """Usage, and the most there was since we first looked."""
        self.usage = max(0, _number(f"{self.path}/{_FILES[self.version][1]}"))
        self.peak = max(self.peak, self.usage)

    def read_peak(self) -> None:
        """The kernel's own peak, where it has risen since we first looked: it misses nothing."""
        peak = self._kernel_peak()
        if peak > self._peak_before:
            self.peak = max(self.peak, peak)

    def _kernel_peak(self) -> int:
        return _number(f"{self.path}/{_FILES[self.version][2]}")

    def kills(self) -> int:
        return read_kills(self.path, self.version)


def read_limit(path: str, version: int) -> int | None:
    limit = _number(f"{path}/{_FILES[version][0]}")
    return None if limit < 0 or limit >= UNLIMITED else limit


def read_kills(path: str, version: int) -> int:
    """How many processes the kernel has OOM-killed in it; UNREADABLE where it does not say."""
    return _named(f"{path}/{_FILES[version][3]}", "oom_kill")


def membership(pid: int) -> tuple[int, str] | None:
    """Version and path (inside its hierarchy) of the memory cgroup that a process is in."""
    return cgroup_of(pid, "memory")


def folders(version: int, path: str) -> list[str]:
    """Folders of a cgroup and of those around it, the innermost first, as far as they can be seen from here."""
    return cgroup_folders("memory", version, path)


def machine_kills() -> int:
    """OOM kills on the whole machine since it was started."""
    return _named("/proc/vmstat", "oom_kill")


def machine_memory() -> tuple[int, int]:
    """Bytes the machine has, and bytes in use that could not be given back."""
    total = max(0, _named("/proc/meminfo", "MemTotal:")) * 1024
    available = _named("/proc/meminfo", "MemAvailable:") * 1024
    return total, total - available if available >= 0 else 0


def _named(path: str, name: str) -> int:
    """The number in the line that begins with this name."""
    for line in read_text(path).splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == name and words[1].isdigit():
            return int(words[1])
    return UNREADABLE


def _number(path: str) -> int:
    text = read_text(path).strip()
    return int(text) if text.isdigit() else UNREADABLE
