"""When to ask a moving training about the loops it is in: early, then ever more rarely."""

from __future__ import annotations

from unstuck.recorder import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.observer.gauge import Gauge

FIRST = 2.0
"""Seconds after the first seam, and between the first questions."""
SHARE = 0.4
"""Later ones come after so much of the time that has passed."""
LONGEST_GAP = 300.0


class Questions:
    """By process: when it was first seen to move, and when it is to be asked next."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = min(1.0, max(0.1, scale))
        self._next: dict[int, float] = {}
        self._first: dict[int, float] = {}

    def tick(self, now: float, training: list[Gauge], growing: list[int]) -> None:
        for gauge in training:
            wanted = at.ASK_GROWTH if gauge.pid in growing else 0
            first = self._first.setdefault(gauge.pid, now)
            if now >= self._next.setdefault(gauge.pid, now + FIRST * self.scale):
                wanted |= at.ASK_LOOPS
                self._next[gauge.pid] = now + min(max(FIRST * self.scale, SHARE * (now - first)), LONGEST_GAP)
            if wanted:
                gauge.ask(wanted)
