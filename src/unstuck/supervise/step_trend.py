"""Steps of each training process over its whole life, thinned out: the ring in the flight file holds recent ones only.

Light: reads the new entries of the ring at each tick, and calls for the rules where steps seem to take longer.
"""

from __future__ import annotations

from unstuck.recorder import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from unstuck import model
    from unstuck.observer.gauge import Gauge
    from unstuck.supervise.flight_folder import FlightFolder

STEPS_KEPT = 256
TICKS_BETWEEN_JUDGEMENTS = 4
MIN_STEPS, MIN_RATIO = 200, 1.8  # a little below what the rule wants: it decides, this only calls it
MIN_RATIO_SINCE_CALLED = 1.3
MAX_REQUESTS = 6  # so often a process whose steps seem to take longer is asked what grows in it,
MIN_STEPS_TO_REQUEST, MIN_RATIO_TO_REQUEST = 100, 1.25  # from this on
CPU, NUMBER = 5, 7  # where a step of the ring has these


class Series:
    """Steps of one process as the ring has them, ever further apart."""

    __slots__ = ("_gap", "called", "path", "read", "requests", "steps")

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.steps: list[tuple[int, ...]] = []
        self.read, self._gap = 0, 1
        self.called, self.requests = 0.0, 0

    def take(self, gauge: Gauge) -> None:
        done = int(gauge.words[at.W_RING])
        for entry in range(max(self.read, done - at.RING_STEPS), done):
            start = at.RING + entry % at.RING_STEPS * at.STEP_WORDS
            self._keep(tuple(gauge.words[start : start + at.STEP_WORDS].tolist()))
        self.read = done

    def _keep(self, step: tuple[int, ...]) -> None:
        """Thinned by number, not by place: where one step in thirty-two was recorded, each of them counts."""
        if self.steps and step[NUMBER] - self.steps[-1][NUMBER] < self._gap:
            return
        self.steps.append(step)
        while len(self.steps) > STEPS_KEPT:
            self._gap *= 2
            every, self.steps = self.steps, self.steps[:1]
            for kept in every[1:]:
                if kept[NUMBER] - self.steps[-1][NUMBER] >= self._gap:
                    self.steps.append(kept)

    def ratio(self, steps: int) -> float:
        """Processor time of the last quarter of all steps compared with the first; 0 while there are too few."""
        if len(self.steps) < 24 or self.steps[-1][NUMBER] - self.steps[0][NUMBER] < steps:
            return 0.0
        first, last = self.steps[0][NUMBER], self.steps[-1][NUMBER]
        early = sorted(s[CPU] for s in self.steps if s[NUMBER] < first + (last - first) / 4)
        late = sorted(s[CPU] for s in self.steps if s[NUMBER] > last - (last - first) / 4)
        if len(early) < 4 or len(late) < 4:
            return 0.0
        return late[len(late) // 2] / max(1, early[len(early) // 2])

    def suspicious(self) -> bool:
        ratio = self.ratio(MIN_STEPS)
        if ratio < max(MIN_RATIO, MIN_RATIO_SINCE_CALLED * self.called):
            return False
        self.called = ratio
        return True

    def grows(self) -> bool:
        """It is worth a request for what grows in it."""
        if self.requests >= MAX_REQUESTS or self.ratio(MIN_STEPS_TO_REQUEST) < MIN_RATIO_TO_REQUEST:
            return False
        self.requests += 1
        return True


class StepTrend:
    def __init__(self, flights: FlightFolder) -> None:
        self.flights = flights
        self._series: dict[int, Series] = {}
        self._ticks = 0
        self.growing: list[int] = []
        """Processes that should be asked what grows in them."""
        self.dearer = False
        """Steps take longer than when the rules were last called for it."""

    def tick(self) -> None:
        """Take in what is new; now and then judge it."""
        self._ticks += 1
        self._take(self.flights.living)
        judged = [] if self._ticks % TICKS_BETWEEN_JUDGEMENTS else list(self._series.items())
        self.growing = [pid for pid, series in judged if series.grows()]
        self.dearer = bool([pid for pid, series in judged if series.suspicious()])  # a list: each is judged

    def close(self) -> bool:
        """Take in what the dead left behind. True if some process's steps came to take longer."""
        self._take(self.flights.dead)
        return any(series.suspicious() or series.called for series in self._series.values())

    def _take(self, gauges: Iterable[Gauge]) -> None:
        for gauge in gauges:
            if gauge.trained:
                known = self._series.get(gauge.pid)
                if known is None or known.path != gauge.path:  # the first, or the process has replaced itself
                    known = self._series[gauge.pid] = Series(gauge.path)
                known.take(gauge)

    def trends(self) -> tuple[model.StepTrend, ...]:
        from unstuck.model import StepTrend
        from unstuck.observer.flights import step_of

        kept = [(pid, series.steps) for pid, series in self._series.items() if series.steps]
        return tuple(StepTrend(pid, tuple(map(step_of, steps))) for pid, steps in kept)
