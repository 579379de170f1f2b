"""When the training waits for its batches: have the processes that make them watched for a while, and rarely again.

Light: one word a process at each tick, until that word says that the run starves.
"""

from __future__ import annotations

import os

from unstuck.observer.gauge import WORKER
from unstuck.recorder import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.model import Strain
    from unstuck.observer.gauge import Gauge
    from unstuck.observer.loader_profile import Probe
    from unstuck.supervise.flight_folder import FlightFolder

LONG = 3.0
"""Seconds that one batch is waited for after which its makers are watched, once, before it is said that the run
starves: where there are few long waits, the run may be over by then."""
CROWDED, STRETCH = 0.15, 5.0
"""The training itself is ready and has no processor for this share of so many seconds, while there are more workers
than processors: then it is looked whose doing that is, once."""
AGAIN = 600.0
"""Seconds before the same training is watched once more."""
KEPT = 4


class Starving:
    """By training process: how often it said that it starves, and when it was last watched."""

    def __init__(self, hangar: FlightFolder) -> None:
        self.hangar = hangar
        self.strains: list[Strain] = []
        self.fault = ""
        self._said: dict[int, int] = {}
        self._next: dict[int, float] = {}
        self._early: set[int] = set()
        self._delays: dict[int, tuple[float, float]] = {}
        self._crowds: set[int] = set()
        self._probe: Probe | None = None

    def tick(self, now: float) -> bool:
        """True when something has been learnt."""
        if self._probe is not None:
            return self._taken()
        for gauge in self.hangar.open.values():
            if not gauge.trains:
                continue
            said = int(gauge.words[at.W_STARVED])
            if said > self._said.get(gauge.pid, 0) and now >= self._next.get(gauge.pid, 0.0):
                self._said[gauge.pid], self._next[gauge.pid] = said, now + AGAIN
                self._begin(gauge)
                break
            if not said and gauge.pid not in self._early and self._waits_long(gauge, now):
                self._early.add(gauge.pid)
                self._begin(gauge)
                break
            if gauge.pid not in self._crowds and self._crowded(gauge, now):
                self._crowds.add(gauge.pid)
                self._begin(gauge)
                break
        return False

    def _crowded(self, main: Gauge, now: float) -> bool:
        began, before = self._delays.setdefault(main.pid, (now, delay(main.pid)))
        if now - began < STRETCH:
            return False
        delayed = delay(main.pid)
        self._delays[main.pid] = now, delayed
        if delayed - before < CROWDED * (now - began):
            return False
        return len(self._workers(main)) > processors(main.pid)

    def _waits_long(self, main: Gauge, now: float) -> bool:
        """One batch has been waited for some time, and it is being made."""
        if main.phase != at.DATA or now - at.present(main.words)[1] / 1e9 < LONG:
            return False
        return bool(main.words[at.W_FETCHING]) or any(g.phase == at.FETCH for g in self._workers(main))

    def _workers(self, main: Gauge) -> list[Gauge]:
        gauges = [g for g in self.hangar.open.values() if g.words[at.W_ROLE] == WORKER]
        own = [g for g in gauges if g.words[at.W_PPID] == main.pid]
        if own or [g for g in self.hangar.open.values() if g.trains] != [main]:
            return own
        return gauges  # started by a server of forks: those of the only training there is

    def _begin(self, main: Gauge) -> None:
        from unstuck.observer.loader_profile import Probe
        from unstuck.observer.tree import descendants

        every = {g.pid for g in self.hangar.open.values()} | set(descendants(main.pid)) | {main.pid}
        self._probe = Probe(main.path, [g.path for g in self._workers(main)], sorted(every))
        self._probe.start()

    def _taken(self) -> bool:
        probe = self._probe
        if probe is None or probe.is_alive():
            return False
        self._probe = None
        if probe.fault is not None:
            raise probe.fault
        if probe.result is None:
            return False
        self.strains = [*self.strains, probe.result][-KEPT:]
        return True

    def close(self) -> bool:
        """The run is over. True if it ever said that it starves."""
        if self._probe is not None:
            self._probe.stop()
            self._taken()
        return bool(self._said)


def delay(pid: int) -> float:
    """Seconds that the main thread of a process was ready to run and had no processor; 0 where the kernel is silent."""
    try:
        with open(f"/proc/{pid}/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def processors(pid: int) -> int:
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return os.cpu_count() or 1
