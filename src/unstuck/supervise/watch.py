"""One watched tree: reads the clock each tick, and calls for an inquiry when something stands still.

Light: while the run is healthy nothing but this, the clock and the gauges is loaded.
"""

from __future__ import annotations

import signal
import time

from unstuck.observer.gauge import Gauge, stat_fields
from unstuck.supervise.clock import SLOW_PACE, SUSPECT, TICK, Clock
from unstuck.supervise.flight_folder import FlightFolder
from unstuck.supervise.memory import Memory
from unstuck.supervise.options import Options
from unstuck.supervise.pages import Pages
from unstuck.supervise.questions import Questions
from unstuck.supervise.starving import Starving
from unstuck.supervise.trend import Trend
from unstuck.supervise.unrecorded import Unrecorded

UNWINDING = 10.0
"""Seconds after Ctrl-C in which a run that moves is taken to be ending."""

STARTING = 1.8
"""Seconds that stand for the pace of a start; the first look comes at three times this."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from unstuck.model import Sender
    from unstuck.supervise.inquiry import Inquiry


class Watch:
    """What the supervisor keeps of the run from tick to tick."""

    def __init__(
        self,
        root: int,
        command: tuple[str, ...],
        options: Options,
        hangar: FlightFolder,
        stdin: str = "",
        inferred: bool = False,
    ) -> None:
        self.root, self.command, self.options, self.hangar, self.stdin = root, command, options, hangar, stdin
        self.inferred = inferred
        self.began = time.monotonic()
        self.clock = Clock(options.stall_after or SUSPECT)
        self.probes_off: dict[str, str] = {}
        self.longest: dict[tuple[int, int], float] = {}
        """Longest pause by process and phase, as far as it was long enough to be seen."""
        self._phases: dict[int, int] = {}
        self.interrupted = False
        self.interrupted_at = 0.0
        self.ending = False
        """We are ending it: what moves now moves because of us."""
        self.receipts: dict[int, int] = {}
        """How often the root had handled each signal, when last read."""
        self.memory = Memory(root, hangar)
        self.trend = Trend(hangar)
        self.starving = Starving(hangar)
        self.pages = Pages(hangar)
        self.unrecorded = Unrecorded(root, hangar)
        self.questions = Questions(self.clock.scale)
        self.senders: list[Sender] = []
        """Signals that reached us, and who sent them."""
        self._news = 0
        self._strained = False
        """Something was seen of the processes that make the batches, and no rule has heard of it yet."""
        self._inquiry: Inquiry | None = None

    @property
    def inquiry(self) -> Inquiry:
        """The part that looks and thinks; loaded when first needed."""
        if self._inquiry is None:
            from unstuck.supervise.inquiry import Inquiry

            self._inquiry = Inquiry(self)
        return self._inquiry

    @property
    def inquired(self) -> bool:
        return self._inquiry is not None

    def tick(self, now: float) -> bool:
        """Read the clock; look and think if it is time. True if there is something new to say."""
        self.hangar.scan()
        progress = {gauge.pid: gauge.progress for gauge in self.hangar.open.values()}
        progress.setdefault(self.root, sum(progress.values()))
        self._note_pauses(progress)
        self.clock.tick(now, progress, _stopped(progress))
        self.note_receipts()
        if self.interrupted and self._goes_on():
            self.interrupted = False
            if self.inquired:
                self.inquiry.thaw()
        self._part("memory", self.memory.tick, now)
        self._part("trend", self.trend.tick)
        if self.interrupted or self.ending:
            return False
        self._part("questions", self._ask, now)
        self._part("strain", self._note_strain, now)
        self._part("pages", self._note_pages, now)
        news = self.inquiry.withdraw_recovered() if self.inquired else False
        for pid in self.clocked():
            hand = self.clock.hands.get(pid)
            if hand is None:
                continue
            p99 = self.p99(pid)
            early = max(1.0, SLOW_PACE * p99 - 1.0)  # a second before the first look, for a Ctrl-C that comes before it
            if hand.looks or early <= hand.standing < early + 2 * TICK:
                self.inquiry.note_flights()
            if self.clock.wants_look(pid, p99):
                news |= self.inquiry.look(pid)
        return self._hear() or news

    def lost(self, now: float) -> list[str]:
        """Lines about processes that turned out not to be recorded."""
        found = {} if self.interrupted or self.ending else self.unrecorded.tick(now)
        for pid, line in found.items():
            self.probes_off[f"recorder of process {pid}"] = line
        return list(found.values())

    def _ask(self, now: float) -> None:
        training = [gauge for gauge in self.hangar.open.values() if gauge.trains]
        self.questions.tick(now, training, [*self.memory.asks(), *self.trend.asks])

    def _note_strain(self, now: float) -> None:
        self._strained |= self.starving.tick(now)

    def _note_pages(self, now: float) -> None:
        self._strained |= self.pages.tick(now)

    def _hear(self) -> bool:
        """Facts came that may decide a rule. True if one did."""
        news = self.hangar.news
        if news == self._news and not self.trend.dearer and not self._strained:
            return False
        self._news, self._strained = news, False
        self.inquiry.note_flights()
        return self.inquiry.think()

    def _part(self, probe: str, action: Callable[..., object], *arguments: object) -> None:
        """A fault of ours in one part ends this part."""
        if probe in self.probes_off:
            return
        try:
            action(*arguments)
        except Exception as fault:
            self.off(probe, fault)

    def note_receipts(self) -> None:
        root = self.hangar.gauge_of(self.root)
        heard = {} if root is None else root.heard()
        if not signal.sigpending() - {signal.SIGCHLD}:  # else the newest receipt may be of one not yet seen by us
            self.receipts = dict(heard)

    @property
    def moved(self) -> bool:
        """Something moved since the last tick."""
        hands = self.clock.hands
        return any(g.progress != hands[g.pid].progress for g in self.hangar.open.values() if g.pid in hands)

    def _goes_on(self) -> bool:
        """It was asked to end and trains on: the script handles the signal in its own way."""
        hands = [hand for pid in self.clocked() if (hand := self.clock.hands.get(pid))]
        return any(hand.moved > self.interrupted_at + UNWINDING for hand in hands)

    def _note_pauses(self, progress: dict[int, int]) -> None:
        """The recorder counts one step in thirty-two; a long pause in any of the others is seen from here."""
        for gauge in self.hangar.open.values():
            hand = self.clock.hands.get(gauge.pid)
            if hand is not None and hand.standing and progress[gauge.pid] != hand.progress:
                key = (gauge.pid, self._phases.get(gauge.pid, 0))
                self.longest[key] = max(self.longest.get(key, 0.0), hand.standing)
            self._phases[gauge.pid] = gauge.phase

    def clocked(self) -> list[int]:
        """Processes whose clock counts: those that train; before any does, what we started."""
        training = [gauge.pid for gauge in self.hangar.open.values() if gauge.trains]
        return training or [self.root]

    def p99(self, pid: int) -> float:
        """Of the present kind of phase. Before the first seam: what importing torch and reading data may well take."""
        gauge: Gauge | None = self.hangar.gauge_of(pid)
        return STARTING * self.clock.scale if gauge is None or not gauge.trains else gauge.p99

    def interrupt(self) -> None:
        """Ctrl-C or SIGTERM came: keep what is known of this very moment, before the tree unwinds."""
        self.interrupted, self.interrupted_at = True, time.monotonic()
        if any(hand.standing >= 1.0 for pid in self.clocked() if (hand := self.clock.hands.get(pid))):
            self.inquiry.freeze()

    def off(self, probe: str, fault: BaseException) -> None:
        self.probes_off.setdefault(probe, f"{type(fault).__name__}: {fault}")


def _stopped(pids: dict[int, int]) -> frozenset[int]:
    """Those that are stopped by SIGSTOP or Ctrl-Z."""
    return frozenset(pid for pid in pids if stat_fields(pid)[:1] in ([b"T"], [b"t"]))
