"""Measures candidates side by side: two loaders are alive at a time at most, the leader and its challenger.

They are measured in turns: a machine that slows down for a while slows both, and only slices side by side are compared.
"""

from __future__ import annotations

import time

from .failing import in_short, of_the_data
from .figures import Duel, Figures
from .patience import Interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .candidates import Candidate
    from .settings import Settings
    from .worth import Worth

TIE = 0.03
"""Two scores nearer than this are equal: the cheaper one is taken."""
PAIRS = 4
"""Slices of each in a race, at most."""
FRESH = 3.0
"""Seconds for which a slice still counts as side by side with the next."""


class OutOfTime(Exception):
    """The search has used up its seconds."""


class Races:
    """`leader` stays alive while others are measured; `now` is the one measured last."""

    def __init__(
        self,
        leader: Candidate,
        open_trial: Callable[[Settings], Any],
        worth: Worth,
        *,
        length: float,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[], object] | None = None,
    ) -> None:
        """`length` is that of a slice, in seconds."""
        self.leader = self.now = leader
        self.deadline = float("inf")
        self.length = length
        self._open, self._worth, self._clock, self._tell = open_trial, worth, clock, tell
        self._alive: dict[Settings, Any] = {}

    def race(self, one: Candidate, other: Candidate, duel: Duel, at_least: int = 1, at_most: int = PAIRS) -> None:
        """Slices of both in turns, until it is certain which is better, or that they are equal."""
        while len(duel.ratios) < at_most:
            rates = {}
            for each in (one, other) if len(duel.ratios) % 2 == 0 else (other, one):
                rate, when = each.latest
                fresh = not duel.ratios and each is one and self._clock() - when < FRESH
                rates[each.settings] = rate if fresh else self.measure(each)
            mine, its = rates[one.settings], rates[other.settings]
            if one.error or other.error:
                break
            duel.add(self._worth.of(one, mine), self._worth.of(other, its), its / mine)
            if len(duel.ratios) >= at_least and duel.decided(1 - TIE, 1 + TIE):
                break

    def measure(self, candidate: Candidate) -> float:
        """One slice more; its rate."""
        if candidate.error:
            return 0.0
        if self._clock() >= self.deadline:
            raise OutOfTime
        self.now = candidate
        try:
            trial = self._alive.get(candidate.settings)
            if trial is None:
                self.put_away(keep=(self.leader.settings,))
                trial = self._alive[candidate.settings] = self._open(candidate.settings)
            chunks = trial.slice(self.length)
            candidate.figures.chunks += chunks
            candidate.latest = Figures(chunks).rate, self._clock()
            self._note(candidate, trial)
        except (Interrupted, OutOfTime):
            raise
        except Exception as error:
            candidate.error, candidate.refuses = in_short(error), of_the_data(error)
            self.put_away(keep=tuple(settings for settings in self._alive if settings != candidate.settings))
        if self._tell is not None:
            self._tell()
        return 0.0 if candidate.error else candidate.latest[0]

    def _note(self, candidate: Candidate, trial: Any) -> None:
        candidate.slices += 1
        candidate.start_up, candidate.whole = trial.start_up, trial.whole
        candidate.batch, candidate.batch_bytes = trial.batch, trial.batch_bytes
        candidate.worker_bytes = max(candidate.worker_bytes, trial.worker_bytes)
        if trial.cpu_samples:
            candidate.cpu_per_sample = trial.cpu / trial.cpu_samples
            candidate.wanted_per_sample = trial.wanted / trial.cpu_samples
        if trial.length is not None:
            self._worth.length = trial.length

    def put_away(self, keep: tuple[Settings, ...]) -> None:
        """Close all loaders but these."""
        for settings in [each for each in self._alive if each not in keep]:
            self._alive.pop(settings).close()
