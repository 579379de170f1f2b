"""Which candidate to measure next, and when enough is known: no workers and their number first, then what is finer.

A challenger is dropped as soon as it is certain that it loses.
"""

from __future__ import annotations

import time

from . import climb
from .contest import Contest, NoWorkers, refused
from .failing import STARTING
from .figures import Duel
from .patience import Interrupted
from .races import TIE, OutOfTime, Races

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .candidates import Candidate, Limits
    from .settings import Settings
    from .step import Step

CLEARLY = 0.05
"""What a change must bring to be proposed."""
LAST_PAIRS = 8
"""Slices of each in the last race, which decides whether to change anything."""
FOR_LAST = 0.2
"""Share of the time that is kept for it."""
STARTS = 0.02
"""Share of a pass that starting the workers may take before keeping them is tried."""


class Search(Contest):
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
        super().__init__(present, limits, step)
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

    @property
    def elapsed(self) -> float:
        return self._clock() - self.began

    def run(self) -> None:
        """To the end, or as far as the time reaches; what is known by then stands."""
        try:
            self.races.deadline = self.began + self.seconds * (1 - FOR_LAST)
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
            self.races.put_away(keep=())

    def _go_through(self) -> None:
        if self.limits.no_workers and self.present.settings.num_workers:
            self.present.error = "not measured"
        for _ in range(2):
            self.races.measure(self.present)
            self.barred = self.barred or self._why_not()
        if self.present.refuses:
            self.barred = refused(self.present)
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

    # --- the parts ---------------------------------------------------------------------------------------

    def _workers(self) -> None:
        """None first: where samples are at hand all workers lose to it, and there may be no time for more."""
        base = self.present.settings
        points = {base.num_workers: self.present}
        if base.num_workers:
            points[0] = self._challenge(base.but(num_workers=0))
        if self.barred:
            return
        first = climb.fills_the_cores(self.present, self.limits)
        wanted = first if first not in points else self._next_number(points)
        while wanted is not None:
            points[wanted] = self._challenge(base.but(num_workers=wanted))
            if points[wanted].error and wanted:
                self._other_method(base, wanted)
            wanted = self._next_number(points)

    def _next_number(self, points: dict[int, Candidate]) -> int | None:
        return climb.after(points, self.best, self.worth, enough=self._nothing_to_gain())

    def _other_method(self, base: Settings, workers: int) -> None:
        """Workers die, hang or cannot be started: perhaps it is the way it is done."""
        failed = self.candidates[base.but(num_workers=workers)].error
        if not failed.startswith(STARTING) or any(
            each.settings.num_workers and not each.error for each in self.candidates.values()
        ):
            return
        for method in self.limits.methods:
            if method == base.start_method:
                continue
            if not self._challenge(base.but(num_workers=workers, start_method=method)).error:
                return

    def _persistent(self) -> None:
        """Also of what is faster than the best, but for its starts."""
        fastest = max(self._sound(), key=self.worth.without_starts, default=self.best)
        ahead = self.worth.without_starts(fastest) > (1 + CLEARLY) * self.best.figures.rate
        candidate = fastest if ahead and not self.best.settings.num_workers else self.best
        if not candidate.settings.num_workers or candidate.settings.persistent_workers or self.limits.not_persistent:
            return
        if not self.barred and (candidate.whole or self.worth.share_of_start(candidate) > STARTS):
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
        at_work = self.best.wanted_per_sample * self.best.figures.rate > 0.6 * settings.num_workers
        if spare > 1 and at_work:
            self._challenge(settings.but(threads=spare))

    def _may_refine(self) -> bool:
        return bool(self.best.settings.num_workers and not self.barred)

    def _pinned(self) -> None:
        if self.limits.gpu and (self._may_refine() or not self.best.settings.num_workers):
            self._challenge(self.best.settings.but(pin_memory=not self.best.settings.pin_memory))

    def little_to_gain(self) -> bool:
        """Even if data cost nothing, the training would not be clearly faster than with the present settings."""
        return self.worth.is_near_the_most(self.present, 1 / (1 + CLEARLY))

    def _nothing_to_gain(self) -> bool:
        """Data do not limit the training with the best so far, for certain."""
        return not self.best.error and self.worth.is_near_the_most(self.best, 1 - TIE / 2)
