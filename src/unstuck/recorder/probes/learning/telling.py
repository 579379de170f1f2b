"""When what was measured is told: with what is new, else ever more rarely. Each telling is the whole, so that the
latest is all a rule needs."""

from __future__ import annotations

from time import monotonic

from ... import journal
from ... import layout as at
from .measurements import Measurements

FIRST_STEPS = 8  # until the first telling; then at each time half as many again
MIN_PAUSE, MAX_PAUSE = 1.0, 60.0  # seconds between two tellings; within these, half as long as the training has run


class Telling:
    def __init__(self, measured: Measurements) -> None:
        self._measured = measured
        self.next = FIRST_STEPS
        """Steps until it is told once more."""
        self._told_at = self._first_told_at = 0.0

    def tell(self, *, news: bool = False) -> None:
        """Write the record; without `news`, only if the last time was long enough ago."""
        measured, now = self._measured, monotonic()
        steps = max((entry.steps for entry in measured.optimizers.stepping()), default=measured.losses.passes())
        pause = min(MAX_PAUSE, max(MIN_PAUSE, 0.5 * (self._told_at - self._first_told_at)))
        if not news and now - self._told_at < pause:
            self.next = steps + 1 + steps // 50
            return
        self._first_told_at = self._first_told_at or now
        self._told_at, self.next = now, steps + max(FIRST_STEPS, steps // 2)
        measured.inventory.look()
        self.write()

    def write(self) -> None:
        journal.replace(self._measured.record(), at.LEARNING)
