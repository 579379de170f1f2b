"""Memory of every process of the run, and of the cgroups around it, noted at each tick.

Light: a few numbers a process. They also go into a file next to the flight files, as far as they change, so that an
OOM kill can be proven even where the supervisor was killed with the training.
"""

from __future__ import annotations

import os

from unstuck.observer import cgroups
from unstuck.observer.memory_file import MemoryFile
from unstuck.recorder import layout as at
from unstuck.recorder.cores import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.model import MemoryCurve, MemoryGroup
    from unstuck.supervise.flight_folder import FlightFolder

POINTS = 256
CURVES = 320  # processes whose curve is kept; of more than that, those gone first are forgotten first
PAGE = os.sysconf("SC_PAGE_SIZE")

GROWN_BYTES, GROWN_SHARE = 4 << 20, 0.005  # by both it must have grown since the last request for what grows
EAGER_REQUESTS = 6  # come as soon as it has grown; then the gap doubles each time
FIRST_GAP, LONGEST_GAP = 0.4, 60.0  # seconds


class Curve:
    """Points (when, bytes, step) of one process: ever thinner, so that they span its whole life."""

    __slots__ = ("_seen", "_stride", "last", "points")

    def __init__(self) -> None:
        self.points: list[tuple[float, int, int]] = []
        self.last = (0.0, 0, 0)
        self._stride, self._seen = 1, 0

    def add(self, now: float, rss: int, step: int) -> None:
        self.last = (now, rss, step)
        if self._seen % self._stride == 0:
            self.points.append(self.last)
        self._seen += 1
        if len(self.points) > POINTS:
            self.points = self.points[::2]
            self._stride *= 2

    def all(self) -> list[tuple[float, int, int]]:
        return self.points if self.points[-1:] == [self.last] else [*self.points, self.last]


class GrowthRequests:
    """When to ask one training process what grows in it: at once while it grows, then more and more rarely."""

    __slots__ = ("_base", "_count", "_gap", "_next")

    def __init__(self) -> None:
        self._base, self._count, self._gap, self._next = 0, 0, FIRST_GAP, 0.0

    def due(self, now: float, size: int) -> bool:
        if now < self._next or size - self._base < max(GROWN_BYTES, self._base * GROWN_SHARE):
            return False
        self._base, self._count, self._next = size, self._count + 1, now + self._gap
        if self._count >= EAGER_REQUESTS:
            self._gap = min(2 * self._gap, LONGEST_GAP)
        return True


class MemoryCurves:
    """Curves by process, groups by path, and who is in which."""

    def __init__(self, root: int, flights: FlightFolder) -> None:
        self.root, self.flights = root, flights
        self._curves: dict[int, Curve] = {}
        self.growing: list[int] = []
        """Training processes that should be asked what grows in them."""
        self._requests: dict[tuple[int, str], GrowthRequests] = {}
        """By process: for its own memory, and for what it has of a GPU."""
        self._ticks = 0
        self._member: dict[int, tuple[int, str] | None] = {}
        self._groups: dict[str, cgroups.Group] = {}
        self._pids: dict[str, set[int]] = {}
        self._machine_kills = cgroups.machine_kills()
        self._file = MemoryFile(flights.folder, root, self._machine_kills, cgroups.machine_memory()[0])

    def tick(self, now: float) -> None:
        """Note the memory of all processes, and of the groups they are in."""
        self.growing = []
        self._ticks += 1
        gauges = {gauge.pid: gauge for gauge in self.flights.living}
        for pid in gauges.keys() | {self.root}:
            rss = resident(pid)
            if not rss:
                continue
            gauge = gauges.get(pid)
            step = at.steps_made(gauge.words) if gauge is not None else 0
            self._curve(pid).add(now, rss, step)
            self._file.rss(pid, now, rss, step)
            if (self._ticks + pid) % 4 == 0 or pid not in self._member:
                self._note_member(pid)
            if gauge is not None and step and gauge.trains:
                sizes = {"host": rss, "device": int(gauge.words[at.W_DEVICE_BYTES])}
                due = [self._request(pid, where).due(now, size) for where, size in sizes.items()]
                if any(due):
                    self.growing.append(pid)
        for group in self._groups.values():
            group.read()
            self._file.use(group, now)
        self._file.flush()

    def _request(self, pid: int, where: str) -> GrowthRequests:
        return self._requests.setdefault((pid, where), GrowthRequests())

    def _curve(self, pid: int) -> Curve:
        curve = self._curves.get(pid)
        if curve is None:
            curve = self._curves[pid] = Curve()
            if len(self._curves) > CURVES:
                living = {gauge.pid for gauge in self.flights.living} | {self.root, pid}
                oldest = next((old for old in self._curves if old not in living), None)
                if oldest is not None:
                    del self._curves[oldest]
        return curve

    def _note_member(self, pid: int) -> None:
        """Its own cgroup, whose counter shows a kill, and the one with the narrowest limit around it."""
        member = cgroups.membership(pid)
        if member is None or self._member.get(pid) == member:
            return
        self._member[pid] = member
        version = member[0]
        around = cgroups.folders(*member)
        limits = [(limit, n) for n, folder in enumerate(around) if (limit := cgroups.read_limit(folder, version))]
        for folder in {*around[:1], *([around[min(limits)[1]]] if limits else [])}:
            if folder not in self._groups:
                self._groups[folder] = cgroups.Group(folder, version)
                self._file.group(self._groups[folder])
            if pid not in self._pids.setdefault(folder, set()):
                self._pids[folder].add(pid)
                self._file.member(pid, self._groups[folder])

    def curves(self) -> tuple[MemoryCurve, ...]:
        from unstuck.model import MemoryCurve, MemoryPoint

        return tuple(
            MemoryCurve(pid, tuple(MemoryPoint(*point) for point in curve.all())) for pid, curve in self._curves.items()
        )

    def groups(self) -> tuple[MemoryGroup, ...]:
        """As they are now; the last one stands for the machine as a whole."""
        from unstuck.model import MemoryGroup

        groups = []
        for path, group in self._groups.items():
            usage = group.usage
            group.read()
            group.read_peak()
            pids = tuple(sorted(self._pids[path]))
            kept = (group.limit, group.usage or usage, group.peak, group.kills_before, group.kills())
            groups.append(MemoryGroup(path, group.version, *kept, pids))
        total, used = cgroups.machine_memory()
        kills = self._machine_kills, cgroups.machine_kills()
        return (*groups, MemoryGroup("", 0, total, used, used, *kills, tuple(sorted(self._curves))))


def resident(pid: int) -> int:
    """Bytes of a process that are in memory; 0 if it is gone."""
    words = read_text(f"/proc/{pid}/statm").split()
    return int(words[1]) * PAGE if len(words) > 1 else 0
