"""Steps of each training process over its whole life, thinned out: the ring in the flight file holds recent ones only.

Light: reads the new entries of the ring at each tick, and calls for the rules where steps seem to become dearer.
"""

from __future__ import annotations

from unstuck.recorder import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from unstuck.model import Step, StepTrend
    from unstuck.observer.gauge import Gauge
    from unstuck.supervise.flight_folder import FlightFolder

KEPT = 256
EVERY = 4
"""Ticks between two judgements."""
STEPS = 200
RATIO = 1.8
"""A little below what the rule asks for: it decides, this only calls it."""
AGAIN = 1.3
ASKS, ASK_STEPS, ASK_RATIO = 6, 100, 1.25
"""So often a process whose steps seem to become dearer is asked what grows in it, from this on."""
CPU, NUMBER = 5, 7


class Series:
    """Steps of one process as the ring has them, ever further apart."""

    __slots__ = ("_gap", "asked", "called", "of", "read", "steps")

    def __init__(self, of: str = "") -> None:
        self.of = of
        self.steps: list[tuple[int, ...]] = []
        self.read, self._gap = 0, 1
        self.called, self.asked = 0.0, 0

    def take(self, gauge: Gauge) -> None:
        done = int(gauge.words[at.W_RING])
        for entry in range(max(self.read, done - at.RING_STEPS), done):
            place = at.RING + entry % at.RING_STEPS * at.STEP_WORDS
            self._keep(tuple(gauge.words[place : place + at.STEP_WORDS].tolist()))
        self.read = done

    def _keep(self, step: tuple[int, ...]) -> None:
        """Thinned by number, not by place: where one step in thirty-two was recorded, each of them counts."""
        if self.steps and step[NUMBER] - self.steps[-1][NUMBER] < self._gap:
            return
        self.steps.append(step)
        while len(self.steps) > KEPT:
            self._gap *= 2
            every, self.steps = self.steps, self.steps[:1]
            for each in every[1:]:
                if each[NUMBER] - self.steps[-1][NUMBER] >= self._gap:
                    self.steps.append(each)

    def ratio(self, steps: int) -> float:
        """Processor time of the last quarter of all steps against that of the first; 0 while there are too few."""
        if len(self.steps) < 24 or self.steps[-1][NUMBER] - self.steps[0][NUMBER] < steps:
            return 0.0
        first, last = self.steps[0][NUMBER], self.steps[-1][NUMBER]
        early = sorted(s[CPU] for s in self.steps if s[NUMBER] < first + (last - first) / 4)
        late = sorted(s[CPU] for s in self.steps if s[NUMBER] > last - (last - first) / 4)
        if len(early) < 4 or len(late) < 4:
            return 0.0
        return late[len(late) // 2] / max(1, early[len(early) // 2])

    def suspicious(self) -> bool:
        ratio = self.ratio(STEPS)
        if ratio < max(RATIO, AGAIN * self.called):
            return False
        self.called = ratio
        return True

    def asks(self) -> bool:
        if self.asked >= ASKS or self.ratio(ASK_STEPS) < ASK_RATIO:
            return False
        self.asked += 1
        return True


class Trend:
    def __init__(self, hangar: FlightFolder) -> None:
        self.hangar = hangar
        self._series: dict[int, Series] = {}
        self._ticks = 0
        self.asks: list[int] = []
        """Processes that should be asked what grows in them."""
        self.dearer = False
        """Steps have become dearer than when the rules were last called for it."""

    def tick(self) -> None:
        """Take in what is new; now and then judge it."""
        self._ticks += 1
        self._take(self.hangar.open.values())
        judged = [] if self._ticks % EVERY else list(self._series.items())
        self.asks = [pid for pid, series in judged if series.asks()]
        self.dearer = bool([pid for pid, series in judged if series.suspicious()])  # each is asked

    def close(self) -> bool:
        """Take in what the dead left behind. True if some process's steps became dearer."""
        self._take(self.hangar.dead)
        return any(series.suspicious() or series.called for series in self._series.values())

    def _take(self, gauges: Iterable[Gauge]) -> None:
        for gauge in gauges:
            if gauge.trained:
                known = self._series.get(gauge.pid)
                if known is None or known.of != gauge.path:  # the first, or the process has replaced itself
                    known = self._series[gauge.pid] = Series(gauge.path)
                known.take(gauge)

    def trends(self) -> tuple[StepTrend, ...]:
        from unstuck.model import StepTrend

        kept = [(pid, series.steps) for pid, series in self._series.items() if series.steps]
        return tuple(StepTrend(pid, tuple(map(_step, steps))) for pid, steps in kept)


def _step(words: tuple[int, ...]) -> Step:
    from unstuck.model import Step

    ended, whole, data, backward, optimizer, cpu = (part / 1e9 for part in words[:6])
    return Step(ended, whole, data, backward, optimizer, cpu, size=words[6], number=words[7])
