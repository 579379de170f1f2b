"""What is read of a run at every tick, cheaply and without looking into its processes.

Light: while the run is healthy nothing but this, the clock and the gauges is loaded.
"""

from __future__ import annotations

import time

from unstuck.observer.gauge import stat_fields
from unstuck.recorder import layout as at
from unstuck.supervise.batch_makers import BatchMakers, PageCopies
from unstuck.supervise.clock import SUSPECT, Clock
from unstuck.supervise.flight_folder import FlightFolder
from unstuck.supervise.memory_curves import MemoryCurves
from unstuck.supervise.step_trend import StepTrend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from unstuck.model import Sender
    from unstuck.observer.gauge import Gauge

START_P99 = 1.8  # seconds that stand for the pace of a start; the first look comes at three times this
FIRST_REQUEST = 2.0  # seconds after the first seam, and between the first requests
REQUEST_SHARE = 0.4  # later requests come after this share of the time that has passed,
LONGEST_GAP = 300.0  # but at least every five minutes


class PartsOff(dict[str, str]):
    """Parts of unstuck that are switched off, and why. An internal error ends one part, never the run."""

    def __init__(self, say: Callable[[str], object], *, verbose: bool = False) -> None:
        self._say, self._verbose = say, verbose

    def attempt(self, part: str, action: Callable[..., object], *arguments: object) -> bool:
        """Do something, unless that part is off. True if it was done and has an answer that is true."""
        if part in self:
            return False
        try:
            return bool(action(*arguments))
        except Exception as error:
            self.fail(part, error)
            return False

    def fail(self, part: str, error: Exception) -> None:
        """Switch a part off, and say so once."""
        if part in self:
            return
        self[part] = f"{type(error).__name__}: {error}"
        what = "no longer watching" if part == "supervisor" else f"{part} is off"
        self._say(f"internal error, {what}; your training continues ({self[part]})")
        if self._verbose:
            import traceback

            traceback.print_exc()


class Readings:
    """Flight files, clock, memory, steps and batch makers of one run."""

    def __init__(self, root: int, flights: FlightFolder, stall_after: float | None, parts: PartsOff) -> None:
        self.root, self.flights, self.parts = root, flights, parts
        self.began = time.monotonic()
        self.clock = Clock(stall_after or SUSPECT)
        self.memory = MemoryCurves(root, flights)
        self.trend = StepTrend(flights)
        self.makers = BatchMakers(flights)
        self.copies = PageCopies(flights)
        self.requests = Requests(self.clock.scale)
        self.ticks = 0
        self._steps: dict[int, int] = {}
        self.longest: dict[tuple[int, int], float] = {}
        """Longest pause by process and phase, as far as it was long enough to be seen."""
        self.senders: list[Sender] = []
        """Signals that reached us, and who sent them."""
        self.interrupted_at: float | None = None
        """When Ctrl-C or SIGTERM came, if the run was not seen to go on after it."""
        self._phases: dict[int, int] = {}
        self._news = 0
        self._measured = False
        """Something was measured of the processes that make the batches, and no rule has heard of it yet."""

    def tick(self, now: float) -> None:
        """Read everything that is read at every tick, also while the run is ending."""
        self.scan()
        progress = {gauge.pid: gauge.progress for gauge in self.flights.living}
        progress.setdefault(self.root, sum(progress.values()))
        self._note_pauses(progress)
        self.clock.tick(now, progress, _stopped(progress))
        self._steps = {gauge.pid: at.steps_made(gauge.words) for gauge in self.flights.living}
        self.parts.attempt("memory", self.memory.tick, now)
        self.parts.attempt("step trend", self.trend.tick)

    def note_steps(self, now: float) -> None:
        """A process that has made a step since the last tick does not stand still. Other signs of movement do not count
        here: at Ctrl-C a process that stood still unwinds."""
        for gauge in self.flights.living:
            if at.steps_made(gauge.words) > self._steps.get(gauge.pid, 0):
                self.clock.moved(gauge.pid, gauge.progress, now)

    def scan(self) -> None:
        self.ticks += 1
        self.flights.scan()

    def measure(self, now: float) -> None:
        """Send requests to the training processes, and measure those that make its batches, where it is time for it."""
        self.parts.attempt("requests", self._request, now)
        self._measured |= self.parts.attempt("batch makers", self.makers.tick, now)
        self._measured |= self.parts.attempt("page copies", self.copies.tick, now)

    def take_news(self) -> bool:
        """Something came since the last call that may decide a rule."""
        known, measured = self._news, self._measured
        self._news, self._measured = self.flights.news, False
        return self._news != known or self.trend.dearer or measured

    def _request(self, now: float) -> None:
        training = [gauge for gauge in self.flights.living if gauge.trains]
        self.requests.tick(now, training, [*self.memory.growing, *self.trend.growing])

    def _note_pauses(self, progress: dict[int, int]) -> None:
        """The recorder counts one step in thirty-two; a long pause in any of the others is seen from here."""
        for gauge in self.flights.living:
            hand = self.clock.hands.get(gauge.pid)
            if hand is not None and hand.standing and progress[gauge.pid] != hand.progress:
                key = (gauge.pid, self._phases.get(gauge.pid, 0))
                self.longest[key] = max(self.longest.get(key, 0.0), hand.standing)
            self._phases[gauge.pid] = gauge.phase

    def clocked(self) -> list[int]:
        """Processes whose clock counts: those that train; before any does, what we started."""
        return [gauge.pid for gauge in self.flights.living if gauge.trains] or [self.root]

    def p99(self, pid: int) -> float:
        """Of the present kind of phase. Before the first seam: what importing torch and reading data may well take."""
        gauge = self.flights.gauge_of(pid)
        return START_P99 * self.clock.scale if gauge is None or not gauge.trains else gauge.p99

    @property
    def moved(self) -> bool:
        """Something moved since the last tick."""
        hands = self.clock.hands
        return any(g.progress != hands[g.pid].progress for g in self.flights.living if g.pid in hands)

    def last_moves(self) -> dict[int, float]:
        """When each process was last seen to move."""
        return {pid: hand.moved for pid, hand in self.clock.hands.items()}


class Requests:
    """When to ask a training that moves about the loops it is in: early, then more and more rarely."""

    def __init__(self, scale: float = 1.0) -> None:
        self._gap = FIRST_REQUEST * min(1.0, max(0.1, scale))
        self._next: dict[int, float] = {}
        self._first: dict[int, float] = {}

    def tick(self, now: float, training: list[Gauge], growing: list[int]) -> None:
        for gauge in training:
            wanted = at.ASK_GROWTH if gauge.pid in growing else 0
            first = self._first.setdefault(gauge.pid, now)
            if now >= self._next.setdefault(gauge.pid, now + self._gap):
                wanted |= at.ASK_LOOPS
                self._next[gauge.pid] = now + min(max(self._gap, REQUEST_SHARE * (now - first)), LONGEST_GAP)
            if wanted:
                gauge.ask(wanted)


def _stopped(pids: dict[int, int]) -> frozenset[int]:
    """Those that are stopped by SIGSTOP or Ctrl-Z."""
    return frozenset(pid for pid in pids if stat_fields(pid)[:1] in ([b"T"], [b"t"]))
