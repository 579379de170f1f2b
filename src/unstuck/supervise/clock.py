"""The stall clock: how long each training process has stood still, less the time that does not count.

Pure: moments are parameters, so that an hour passes in a test in no time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unstuck.model import Flight, Pace, Stall, Times

TICK = 0.5
"""Seconds between two readings."""
SLOW_PACE = 3.0
"""A phase is worth a look when it has taken this many times the p99 of its kind."""
LOOKS_AT = (1.5, 3.0, 5.5, 8.0, 10.5, 13.0, 16.0, 20.0, 30.0, 45.0, 60.0)
"""Standing seconds at which stacks are taken; then each time a third more. Early ones make a proof by 15 s."""

DEFAULT = Times()
EXCUSED_LOOK = 10.0
"""Seconds after which an excuse is looked at again."""


@dataclass(slots=True)
class Hand:
    """The clock's memory of one process."""

    progress: int = -1
    moved: float = 0.0
    standing: float = 0.0
    looks: int = 0
    next_look: float = 0.0
    excuse: str = ""
    excused: float = 0.0
    """Seconds under the present excuse."""


@dataclass(slots=True)
class Clock:
    """Fed with one reading a tick, says which processes stand still and when to look at them."""

    times: Times = field(default_factory=Times)
    hands: dict[int, Hand] = field(default_factory=dict)
    _last: float | None = None

    def tick(self, now: float, progress: dict[int, int], stopped: frozenset[int] = frozenset()) -> None:
        """`progress` by pid as just read; time in which we were not scheduled, or they were stopped, is not counted."""
        passed = 0.0 if self._last is None else min(now - self._last, 2 * TICK)
        self._last = now
        for pid, value in progress.items():
            hand = self.hands.get(pid)
            if hand is None:
                self.hands[pid] = Hand(value, now)
            elif value != hand.progress:
                self.hands[pid] = Hand(value, now)
            elif hand.excuse:
                hand.excused += passed
            elif pid not in stopped:
                hand.standing += passed
        for pid in self.hands.keys() - progress.keys():
            del self.hands[pid]

    def wants_look(self, pid: int, pace: Pace) -> bool:
        """It is time to look at `pid`, for the first time or again."""
        hand = self.hands.get(pid)
        if hand is None:
            return False
        if hand.excuse:
            return hand.excused >= EXCUSED_LOOK
        return hand.standing >= max(hand.next_look or self.first_look(), SLOW_PACE * pace.p99)

    def looked(self, pid: int) -> None:
        """Schedule the next look: soon at first, for a proof needs two; then ever rarer."""
        hand = self.hands[pid]
        hand.looks += 1
        scale = self.times.suspect / DEFAULT.suspect
        later = [at * scale for at in LOOKS_AT if at * scale > hand.standing + 0.5 * min(scale, 1)]
        hand.next_look = later[0] if later else hand.standing * 4 / 3

    def first_look(self) -> float:
        return LOOKS_AT[0] * self.times.suspect / DEFAULT.suspect

    def excuse(self, pid: int, why: str) -> None:
        """While `why` is not empty the time does not count; a look now and then sees it end."""
        if pid in self.hands:
            self.hands[pid].excuse, self.hands[pid].excused = why, 0.0

    def stall(self, flight: Flight | None, pid: int, still: float, interrupted: bool) -> Stall | None:
        """What the clock knows of one process; None while it moves."""
        hand = self.hands.get(pid)
        if hand is None or hand.standing <= 0:
            return None
        pace = Pace() if flight is None else flight.paces.get(flight.phase, Pace())
        return Stall(
            pid=pid,
            phase="start" if flight is None else flight.phase,
            since=hand.moved,
            standing=hand.standing,
            pace=pace,
            seams=flight is not None and hand.progress > 0 and flight.phase != "start",
            excuse=hand.excuse,
            still=still,
            suspect=self._suspect(hand, pace, interrupted),
        )

    def _suspect(self, hand: Hand, pace: Pace, interrupted: bool) -> bool:
        if hand.excuse:
            return False
        if hand.standing >= max(self.times.suspect, SLOW_PACE * pace.p99):
            return True
        # Ctrl-C asks early: far outside its own pace is enough; without a pace yet, half the waiting time.
        known = pace.count >= 10 and hand.standing >= max(1.0, 20 * pace.p99)
        return interrupted and (known or hand.standing >= self.times.suspect / 2)
