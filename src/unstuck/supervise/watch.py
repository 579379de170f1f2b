"""One watched tree: reads the clock each tick, and calls for an inquiry when something stands still.

Light: while the run is healthy nothing but this, the clock and the gauges is loaded.
"""

from __future__ import annotations

import time

from unstuck.record.gauge import Gauge, stat_fields
from unstuck.supervise.clock import SUSPECT, Clock
from unstuck.supervise.hangar import Hangar
from unstuck.supervise.options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.supervise.inquiry import Inquiry


class Watch:
    """What the supervisor keeps of the run from tick to tick."""

    def __init__(
        self,
        root: int,
        command: tuple[str, ...],
        options: Options,
        hangar: Hangar,
        stdin: str = "",
        inferred: bool = False,
    ) -> None:
        self.root, self.command, self.options, self.hangar, self.stdin = root, command, options, hangar, stdin
        self.inferred = inferred
        self.began = time.monotonic()
        self.clock = Clock(options.stall_after or SUSPECT)
        self.probes_off: dict[str, str] = {}
        self.interrupted = False
        self.ending = False
        """We are ending it: what moves now moves because of us."""
        self.receipts = 0
        """Bytes of stacks the root left on signals, as of the last tick."""
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
        self.clock.tick(now, progress, _stopped(progress))
        if self.interrupted or self.ending:
            return False
        root = self.hangar.gauge_of(self.root)
        self.receipts = 0 if root is None else root.signalled()
        news = self.inquiry.withdraw_recovered() if self.inquired else False
        for pid in self.clocked():
            hand = self.clock.hands.get(pid)
            if hand is None:
                continue
            if hand.looks or hand.standing >= 1.0 >= hand.standing - 0.6:
                self.inquiry.note_flights()
            if self.clock.wants_look(pid, self.p99(pid)):
                news |= self.inquiry.look(pid)
        return news

    def clocked(self) -> list[int]:
        """Processes whose clock counts: those that train; before any does, what we started."""
        training = [gauge.pid for gauge in self.hangar.open.values() if gauge.trains]
        return training or [self.root]

    def p99(self, pid: int) -> float:
        gauge: Gauge | None = self.hangar.gauge_of(pid)
        return 0.0 if gauge is None else gauge.p99

    def interrupt(self) -> None:
        """Ctrl-C or SIGTERM came: keep what is known of this very moment, before the tree unwinds."""
        self.interrupted = True
        if any(hand.standing >= 1.0 for pid in self.clocked() if (hand := self.clock.hands.get(pid))):
            self.inquiry.freeze()

    def off(self, probe: str, fault: BaseException) -> None:
        self.probes_off.setdefault(probe, f"{type(fault).__name__}: {fault}")


def _stopped(pids: dict[int, int]) -> frozenset[int]:
    """Those that are stopped by SIGSTOP or Ctrl-Z."""
    return frozenset(pid for pid in pids if stat_fields(pid)[:1] in ([b"T"], [b"t"]))
