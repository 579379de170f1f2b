"""The present settings, the best so far and its challengers: who wins, and what follows if one fails."""

from __future__ import annotations

from .candidates import Candidate, Limits, too_much
from .climb import PLATEAU
from .figures import Duel
from .races import TIE, Races
from .worth import Worth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .settings import Settings
    from .step import Step


class NoWorkers(Exception):
    """The script's own code fails in a worker: none is measured any more."""


class Contest:
    """`candidates`, of which `present` is one and `best` another, or the same; measured by `races`."""

    races: Races

    def __init__(self, present: Settings, limits: Limits, step: Step | None) -> None:
        self.limits, self.step = limits, step
        self.worth = Worth(limits, step)
        self.present = Candidate(present)
        self.candidates = {present: self.present}
        self.barred = limits.no_workers
        """Why there are no workers, or no other ones, in sentences."""
        self._behind = 1.0
        """The best to the fastest there was: of two that are nearly equal the cheaper one is taken."""

    @property
    def best(self) -> Candidate:
        return self.races.leader

    def _challenge(self, settings: Settings) -> Candidate:
        """Measure it against the best so far; it becomes the best if it wins."""
        candidate = self.candidates.setdefault(settings, Candidate(settings))
        if not candidate.error:
            candidate.error = too_much(settings, self.limits, self.candidates.values())
        if candidate.error:
            return candidate
        best = self.best
        if best.error or not best.slices:
            self.races.measure(candidate)
            self.races.leader = best if candidate.error else candidate
            self._check(candidate)
            return candidate
        duel = Duel()
        self.races.race(best, candidate, duel)
        self._check(candidate, best)
        if self.best.error:
            self._next_best()
        elif not candidate.error and self._wins(candidate, duel):
            self._behind = min(1.0, self._behind * duel.ratio)
            self.races.leader = candidate
        return candidate

    def _check(self, *measured: Candidate) -> None:
        if any(each.refuses for each in measured):
            raise NoWorkers

    def _wins(self, candidate: Candidate, duel: Duel) -> bool:
        """Clearly faster; or as fast as any, for certain, and cheaper."""
        if duel.ratio > 1 + TIE:
            return True
        cheaper = candidate.settings.cost < self.best.settings.cost
        return cheaper and duel.ratio * self._behind > 1 - TIE and duel.interval()[0] > 1 - 2 * PLATEAU

    def _give_up_workers(self) -> None:
        """What one worker could not read, another may read wrongly: only what the script does now, and no workers."""
        failed = next(each for each in self.candidates.values() if each.refuses)
        self.barred = self.barred or refused(failed)
        self._next_best()

    def _next_best(self) -> None:
        """Of those that did not fail the one with the highest score; without workers where these are given up."""
        sound = self._sound()
        if self.barred:
            sound = [each for each in sound if each is self.present or not each.settings.num_workers]
        self.races.leader = max(sound, key=self.worth.score, default=self.present)

    def _sound(self) -> list[Candidate]:
        return [each for each in self.candidates.values() if each.slices and not each.error]


def refused(candidate: Candidate) -> str:
    return f"Its samples fail in a worker ({candidate.error}): workers are not proposed."
