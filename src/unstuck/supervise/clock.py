"""The stall clock: how long each process has stood still, less the time that does not count.

Pure: moments are parameters, so that an hour passes in a test in no time.
"""

from __future__ import annotations

TICK = 0.5  # seconds between two readings
SUSPECT = 10.0  # seconds of standing still that make a suspect, by default
SLOW_PACE = 3.0  # a phase is worth a look when it has taken this many times the p99 of its kind
LOOKS_AT = (1.5, 3.0, 5.5, 8.0, 10.5, 12.5, 16.0, 20.0, 30.0, 45.0, 60.0)
"""Standing seconds at which stacks are taken; then each time a third more. Early ones make a proof by 15 s."""
EXCUSED_LOOK = 10.0  # seconds after which an excuse is looked at again


class Hand:
    """The clock's memory of one process."""

    __slots__ = ("excuse", "excused", "looks", "moved", "next_look", "progress", "standing")

    def __init__(self, progress: int, moved: float) -> None:
        self.progress = progress
        self.moved = moved
        self.standing = 0.0
        self.looks = 0
        self.next_look = 0.0
        self.excuse = ""
        self.excused = 0.0


class Clock:
    """Fed with one reading a tick, says who stands still and when to look."""

    def __init__(self, suspect: float = SUSPECT) -> None:
        self.suspect = suspect
        self.scale = suspect / SUSPECT
        self.hands: dict[int, Hand] = {}
        self._last: float | None = None

    def tick(self, now: float, progress: dict[int, int], stopped: frozenset[int] = frozenset()) -> None:
        """`progress` by pid as just read. Time in which we did not run, or they were stopped, is not counted."""
        passed = 0.0 if self._last is None else min(now - self._last, 2 * TICK)
        self._last = now
        for pid, value in progress.items():
            hand = self.hands.get(pid)
            if hand is None or value != hand.progress:
                self.hands[pid] = Hand(value, now)
            elif hand.excuse:
                hand.excused += passed
            elif pid not in stopped:
                hand.standing += passed
        for pid in self.hands.keys() - progress.keys():
            del self.hands[pid]

    def moved(self, pid: int, progress: int, now: float) -> None:
        """It is known to have moved, between two ticks."""
        if pid in self.hands:
            self.hands[pid] = Hand(progress, now)

    def wants_look(self, pid: int, p99: float) -> bool:
        """It is time to look at `pid`, for the first time or again. `p99`: of this kind of phase."""
        hand = self.hands.get(pid)
        if hand is None:
            return False
        if hand.excuse:
            return hand.excused >= EXCUSED_LOOK
        return hand.standing >= max(hand.next_look or LOOKS_AT[0] * self.scale, SLOW_PACE * p99)

    def due(self, pid: int) -> bool:
        """It stands, and a look taken for another's sake serves it too."""
        hand = self.hands.get(pid)
        return hand is not None and hand.standing >= LOOKS_AT[0] * self.scale

    def looked(self, pid: int, excuse: str = "") -> None:
        """Schedule the next look: soon at first, for a proof needs two, then more rarely. An excuse stops the clock."""
        hand = self.hands.get(pid)
        if hand is None:
            return
        hand.looks += 1
        hand.excuse, hand.excused = excuse, 0.0
        later = [at * self.scale for at in LOOKS_AT if at * self.scale > hand.standing + 0.5 * min(self.scale, 1.0)]
        hand.next_look = later[0] if later else hand.standing * 4 / 3

    def suspects(self, pid: int, p99: float, count: int, interrupted: bool) -> bool:
        """Longer than the run's own pace allows."""
        hand = self.hands.get(pid)
        if hand is None or hand.excuse:
            return False
        if hand.standing >= max(self.suspect, SLOW_PACE * p99):
            return True
        # Ctrl-C asks early: outside its own pace is enough; without a pace yet, half the waiting time.
        enough = min(1.5, self.suspect / 2) if count >= 5 else self.suspect / 2
        return interrupted and hand.standing >= max(enough, 5 * p99)
