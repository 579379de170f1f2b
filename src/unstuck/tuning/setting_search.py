"""Which candidate to measure next, and when enough is known: no workers and their number first, then what is finer.

A challenger is dropped as soon as it is certain that it loses; if it wins, it is the best so far.
"""

from __future__ import annotations

import time

from ..takeover.interrupts import Interrupted
from .race import TIE, Candidate, Duel, OutOfTime, Races
from .search_limits import too_much
from .worth import Worth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..takeover.loaders_in_use import Step
    from .search_limits import Limits
    from .worker_settings import Settings

CLEARLY = 0.05  # share that a change must bring to be proposed
PLATEAU = 0.07  # a neighbour nearer than this to the best: there is nothing to be found between them
EACH_COUNTS = 0.8  # share of what as many workers could bring at best, from which on none of them can be spared
LAST_PAIRS = 8  # slices of each in the last race, which decides whether to change anything
LAST_SHARE = 0.2  # of the time, kept for that
START_SHARE = 0.02  # of a pass that starting the workers may take before keeping them is tried


class NoWorkers(Exception):
    """The script's own code fails in a worker: none is measured any more."""


class Search:
    """`run()`, then `best`, `present` and `candidates`. `open_trial(settings)` gives something that is measured by
    `slice(seconds)` and put away by `close()`."""

    def __init__(
        self,
        present: Settings,
        limits: Limits,
        open_trial: Callable[[Settings], Any],
        *,
        seconds: float,
        step: Step | None = None,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[Search], object] | None = None,
        why_not: Callable[[], str] = str,
    ) -> None:
        """`why_not` is asked after each slice of the present settings: why there must be no other workers."""
        self.limits, self.step, self.worth = limits, step, Worth(limits, step)
        self.present = Candidate(present)
        self.candidates = {present: self.present}
        self.barred = limits.no_workers
        """Why there are no workers, or no other ones, in sentences."""
        self.seconds, self._clock, self._why_not = seconds, clock, why_not
        self.began = clock()
        self.races = Races(
            self.present,
            open_trial,
            self.worth,
            length=min(0.6, max(0.2, seconds / 100)),
            clock=clock,
            tell=None if tell is None else lambda: tell(self),
        )
        self.last: Duel | None = None
        """Of the best with the present settings, at the end."""
        self.interrupted = self.cut_short = False
        self._behind = 1.0
        """The best compared with the fastest there was: of two that are nearly equal the cheaper one is taken."""

    @property
    def best(self) -> Candidate:
        return self.races.leader

    @property
    def elapsed(self) -> float:
        return self._clock() - self.began

    def run(self) -> None:
        """To the end, or as far as the time reaches; what is known by then stands."""
        try:
            self.races.deadline = self.began + self.seconds * (1 - LAST_SHARE)
            try:
                self._go_through()
            except OutOfTime:
                self.cut_short = True
            except NoWorkers:
                self._give_up_workers()
            self.races.deadline = self.began + self.seconds
            self._last_races()
        except OutOfTime:
            pass
        except Interrupted:
            self.interrupted = True
        finally:
            self.races.close_all()

    def _go_through(self) -> None:
        if self.limits.no_workers and self.present.settings.num_workers:
            self.present.error = "not measured"
        for _ in range(2):
            self.races.measure(self.present)
            self.barred = self.barred or self._why_not()
        if self.present.refuses:
            self.barred = _refused(self.present)
        if not self.present.error and self.little_to_gain():
            return
        if not self.limits.undivided or self.present.settings.num_workers <= 1:
            self._workers()
        for part in (self._persistent, self._prefetch, self._threads, self._pinned):
            if not self._nothing_to_gain():
                part()

    def _last_races(self) -> None:
        """Against the present settings. What fails here was never good: the next best takes its place."""
        while self.best is not self.present and not self.present.error:
            rival, self.last = self.best, Duel()
            self.races.race(self.present, rival, self.last, at_least=3, at_most=LAST_PAIRS)
            if self.present.refuses or rival.refuses:
                self._give_up_workers()
            elif rival.error:
                self._next_best()
            else:
                return

    # --- who wins ----------------------------------------------------------------------------------------

    def _challenge(self, settings: Settings) -> Candidate:
        """Measure it against the best so far; it becomes the best if it wins."""
        candidate = self.candidates.setdefault(settings, Candidate(settings))
        candidate.error = candidate.error or too_much(settings, self.limits, list(self.candidates.values()))
        if candidate.error:
            return candidate
        best = self.best
        if best.error or not best.slices:
            self.races.measure(candidate)
            self.races.leader = best if candidate.error else candidate
        else:
            duel = Duel()
            self.races.race(best, candidate, duel)
            if self.best.error:
                self._next_best()
            elif not candidate.error and self._wins(candidate, duel):
                self._behind = min(1.0, self._behind * duel.ratio)
                self.races.leader = candidate
        if candidate.refuses or best.refuses:
            raise NoWorkers
        return candidate

    def _wins(self, candidate: Candidate, duel: Duel) -> bool:
        """Clearly faster; or as fast as any, for certain, and cheaper."""
        if duel.ratio > 1 + TIE:
            return True
        cheaper = candidate.settings.cost < self.best.settings.cost
        return cheaper and duel.ratio * self._behind > 1 - TIE and duel.interval()[0] > 1 - 2 * PLATEAU

    def _give_up_workers(self) -> None:
        """What one worker could not read, another may read wrongly: only what the script does now, and no workers."""
        failed = next(candidate for candidate in self.candidates.values() if candidate.refuses)
        self.barred = self.barred or _refused(failed)
        self._next_best()

    def _next_best(self) -> None:
        """Of those that did not fail the one with the highest score; without workers where these are given up."""
        sound = self._sound()
        if self.barred:
            sound = [each for each in sound if each is self.present or not each.settings.num_workers]
        self.races.leader = max(sound, key=self.worth.score, default=self.present)

    def _sound(self) -> list[Candidate]:
        return [candidate for candidate in self.candidates.values() if candidate.slices and not candidate.error]

    # --- the number of workers ---------------------------------------------------------------------------

    def _workers(self) -> None:
        """None first: where samples are at hand all workers lose to it, and there may be no time for more."""
        base = self.present.settings
        known = {base.num_workers: self.present}
        if base.num_workers:
            known[0] = self._challenge(base.but(num_workers=0))
        if self.barred:
            return
        first = self._fills_the_cores()
        wanted = first if first not in known else self._next_number(known)
        while wanted is not None:
            known[wanted] = self._challenge(base.but(num_workers=wanted))
            wanted = self._next_number(known)

    def _fills_the_cores(self) -> int:
        """As many workers as keep all cores busy: more than cores where a worker mostly waits."""
        present, cores = self.present, self.limits.cores
        used = present.wanted_per_sample * present.rate / max(1, present.settings.num_workers)
        wanted = cores if used >= 0.5 or present.error else round(cores / max(used, 0.01))
        return min(wanted, self.limits.most_workers)

    def _next_number(self, known: dict[int, Candidate]) -> int | None:
        """Twice the best, or halfway to its neighbours; None if all that matter are known."""
        best, number = self.best, self.best.settings.num_workers
        enough = self._nothing_to_gain()
        lower = max((each for each in known if each < number), default=None)
        higher = min((each for each in known if each > number), default=None)
        near = max(1, number // 4)
        if higher is None and not self.worth.is_busy(best) and not enough:
            more = min(number * 2 or 1, self.limits.most_workers)
            if more > number:
                return more
        if higher is not None and higher - number > near and not enough and self._may_hide_better(known[higher]):
            return (number + higher) // 2
        if lower is None and number:
            return number // 2
        if lower is not None and number - lower > near and self._may_hide_better(known[lower]):
            return (number + lower) // 2
        return None

    def _may_hide_better(self, neighbour: Candidate) -> bool:
        """Something better may lie between the best and this one."""
        its, top = self.worth.score(neighbour), self.worth.score(self.best)
        mine, other = self.best.settings.num_workers, neighbour.settings.num_workers
        if neighbour.error or other > mine:
            return bool(neighbour.error) or other > 2 * mine or its < (1 - PLATEAU) * top
        more = mine / max(1, other)
        return its < (1 - PLATEAU) * top and top < EACH_COUNTS * more * its  # else each worker brings its share

    # --- what is finer -----------------------------------------------------------------------------------

    def _persistent(self) -> None:
        """Also of what is faster than the best, but for its starts."""
        fastest = max(self._sound(), key=self.worth.without_starts, default=self.best)
        ahead = self.worth.without_starts(fastest) > (1 + CLEARLY) * self.best.rate
        candidate = fastest if ahead and not self.best.settings.num_workers else self.best
        if not candidate.settings.num_workers or candidate.settings.persistent_workers or self.limits.not_persistent:
            return
        share = self.worth.share_of_start(candidate, candidate.rate)
        if not self.barred and (candidate.whole or share > START_SHARE):
            self._challenge(candidate.settings.but(persistent_workers=True))

    def _prefetch(self) -> None:
        for depth in (4, 8):
            settings = self.best.settings
            if not self._may_refine() or (settings.prefetch_factor or 0) >= depth:
                continue
            if self._challenge(settings.but(prefetch_factor=depth)) is not self.best:
                return

    def _threads(self) -> None:
        """More threads in each worker, where workers compute and cores are left over."""
        settings = self.best.settings
        spare = self.limits.cores // settings.num_workers if self._may_refine() else 1
        at_work = self.best.wanted_per_sample * self.best.rate > 0.6 * settings.num_workers
        if spare > 1 and at_work:
            self._challenge(settings.but(threads=spare))

    def _pinned(self) -> None:
        if self.limits.gpu and (self._may_refine() or not self.best.settings.num_workers):
            self._challenge(self.best.settings.but(pin_memory=not self.best.settings.pin_memory))

    def _may_refine(self) -> bool:
        return bool(self.best.settings.num_workers and not self.barred)

    def little_to_gain(self) -> bool:
        """Even if data cost nothing, the training would not be clearly faster than with the present settings."""
        return self.worth.is_near_the_most(self.present, 1 / (1 + CLEARLY))

    def _nothing_to_gain(self) -> bool:
        """Data do not limit the training with the best so far, for certain."""
        return not self.best.error and self.worth.is_near_the_most(self.best, 1 - TIE / 2)


def _refused(candidate: Candidate) -> str:
    return f"Its samples fail in a worker ({candidate.error}): workers are not proposed."
