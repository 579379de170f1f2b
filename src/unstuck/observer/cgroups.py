"""The memory cgroups around a process, v1 and v2: their limits, usage and counters of kills. Light: os alone."""

from __future__ import annotations

import os

UNLIMITED = 1 << 60
"""v1 writes a number near 2**63 where there is no limit."""
UNREADABLE = -1


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
        self.usage = max(
            0, _number(f"{self.path}/{'memory.usage_in_bytes' if self.version == 1 else 'memory.current'}")
        )
        self.peak = max(self.peak, self.usage)

    def read_peak(self) -> None:
        """The kernel's own peak, where it has risen since we first looked: it misses nothing."""
        peak = self._kernel_peak()
        if peak > self._peak_before:
            self.peak = max(self.peak, peak)

    def _kernel_peak(self) -> int:
        return _number(f"{self.path}/{'memory.max_usage_in_bytes' if self.version == 1 else 'memory.peak'}")

    def kills(self) -> int:
        return read_kills(self.path, self.version)


def read_limit(path: str, version: int) -> int | None:
    limit = _number(f"{path}/{'memory.limit_in_bytes' if version == 1 else 'memory.max'}")
    return None if limit < 0 or limit >= UNLIMITED else limit


def read_kills(path: str, version: int) -> int:
    """How many processes the kernel has killed in it for want of memory; UNREADABLE where it does not say."""
    text = _text(f"{path}/{'memory.oom_control' if version == 1 else 'memory.events'}")
    for line in text.splitlines():
        name, _, number = line.partition(" ")
        if name == "oom_kill" and number.isdigit():
            return int(number)
    return UNREADABLE


def membership(pid: int) -> tuple[int, str] | None:
    """Version and path (inside its hierarchy) of the memory cgroup that a process is in."""
    unified = None
    for line in _text(f"/proc/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return 1, path
        if not controllers:
            unified = 2, path
    return unified


def folders(version: int, path: str) -> list[str]:
    """Folders of a cgroup and of those around it, the innermost first, as far as they can be seen from here."""
    point, inside = _mounted(version, path)
    if not point:
        return []
    found = []
    while True:
        folder = point + inside.rstrip("/")
        if os.path.isdir(folder):
            found.append(folder)
        if inside in ("", "/"):
            return found
        inside = os.path.dirname(inside)


def _mounted(version: int, path: str) -> tuple[str, str]:
    """Where the hierarchy is mounted, and the path below that: in a container only a part of it may be."""
    best = ("", "")
    for line in _text("/proc/self/mountinfo").splitlines():
        words, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        if (kind, version) not in (("cgroup", 1), ("cgroup2", 2)) or (
            version == 1 and "memory" not in options.split(",")
        ):
            continue
        root, point = words.split(" ")[3:5]
        if root == "/" or path == root or path.startswith(root + "/"):
            return point, path if root == "/" else path[len(root) :]
        best = (point, "")  # its own cgroup is what is mounted
    return best


def machine_kills() -> int:
    """Kills for want of memory on the whole machine since it was started."""
    for line in _text("/proc/vmstat").splitlines():
        if line.startswith("oom_kill "):
            return int(line.split()[1])
    return UNREADABLE


def machine_memory() -> tuple[int, int]:
    """Bytes the machine has, and bytes in use that could not be given back."""
    sizes = {}
    for line in _text("/proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name in ("MemTotal", "MemAvailable"):
            sizes[name] = int(rest.split()[0]) * 1024
    total = sizes.get("MemTotal", 0)
    return total, total - sizes.get("MemAvailable", total)


def _text(path: str) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        read = b""
        while piece := os.read(handle, 65536):
            read += piece
        return read.decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    finally:
        os.close(handle)


def _number(path: str) -> int:
    text = _text(path).strip()
    return int(text) if text.isdigit() else UNREADABLE
