"""Which candidate to measure next, and when enough is known: workers first, then what is finer.

Two loaders are alive at a time at most, the best so far and its challenger, and are measured in turns: a machine that
slows down for a while slows both, and only slices side by side are compared. A challenger is dropped as soon as it is
certain that it loses.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from .figures import Duel, Figures
from .settings import Settings
from .trial import Interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .step import Step

TIE = 0.03
"""Two scores nearer than this are equal: the cheaper one is taken."""
CLEARLY = 0.05
"""What a change must bring to be proposed."""
PAIRS = 4
"""Slices of each in a race, at most."""
LAST_PAIRS = 8
"""The same in the last one, which decides whether to change anything."""
FRESH = 3.0
"""Seconds for which a slice still counts as side by side with the next."""
PLATEAU = 0.07
"""A neighbour nearer than this to the best: there is nothing to be found between them."""
EACH_COUNTS = 0.8
"""Share of what as many workers could bring at best, from which on none of them can be spared."""
FOR_LAST = 0.2
"""Share of the time that is kept for the last race, between the choice and the present settings."""
BUSY = 0.85
"""Share of the cores' time in use at which more workers cannot help."""
STARTS = 0.02
"""Share of a pass that starting the workers may take before keeping them is tried."""


MEMORY = 0.7
"""Share of the free memory that the workers of a candidate may take."""
STARTING = ("RuntimeError", "OSError", "AttributeError", "PicklingError", "TypeError")
"""Errors of a worker that could not be started, died, or must not use the GPU after a fork."""


class OutOfTime(Exception):
    """The search has used up its seconds."""


@dataclass(frozen=True)
class Limits:
    """What there is to search in."""

    cores: int
    most_workers: int
    gpu: bool = False
    methods: tuple[str, ...] = ()
    """Start methods to try if workers fail with the present one."""
    room: int | None = None
    """Free bytes of shared memory."""
    length: int | None = None
    """Batches of a pass, where it is known."""
    memory: int | None = None
    """Bytes that may still be used."""
    process_bytes: int = 0
    """What a worker could need at most, as long as none is known: a copy of all that this process has."""


@dataclass
class Candidate:
    """One set of settings and what is known about it."""

    settings: Settings
    figures: Figures = field(default_factory=Figures)
    slices: int = 0
    latest: tuple[float, float] = (0.0, float("-inf"))
    """Rate of the last slice, and when it was taken."""
    start_up: float = 0.0
    cpu_per_sample: float = 0.0
    wanted_per_sample: float = 0.0
    """The same with the time it waited for a core: on a machine that others use too, this is what it needs."""
    whole: bool = False
    batch: float = 1.0
    """Samples of a batch."""
    batch_bytes: int = 0
    worker_bytes: int = 0
    error: str = ""


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
    ) -> None:
        self.limits, self.seconds, self.step = limits, seconds, step
        self._open, self._clock, self._tell = open_trial, clock, tell
        self.began = clock()
        self._deadline = self.began + seconds * (1 - FOR_LAST)
        self.slice = min(0.6, max(0.2, seconds / 100))
        self.present = Candidate(present)
        self.candidates = {present: self.present}
        self.best = self.present
        self.now: Candidate = self.present
        self.last: Duel | None = None
        """Of the best with the present settings, at the end."""
        self.interrupted = False
        self._behind = 1.0
        """The best to the fastest there was: of two that are nearly equal the cheaper one is taken."""
        self.length = limits.length
        self._alive: dict[Settings, Any] = {}

    @property
    def elapsed(self) -> float:
        return self._clock() - self.began

    def run(self) -> None:
        """To the end, or as far as the time reaches; what is known by then stands."""
        try:
            try:
                self._go_through()
            except OutOfTime:
                pass
            self._deadline = self.began + self.seconds
            if self.best is not self.present and not self.present.error:
                self.last = Duel()
                self._race(self.present, self.best, self.last, at_least=3, at_most=LAST_PAIRS)
        except OutOfTime:
            pass
        except Interrupted:
            self.interrupted = True
        finally:
            self._put_away(keep=())

    def _go_through(self) -> None:
        for _ in range(2):
            self._measure(self.present)
        if not self.present.error and self.little_to_gain():
            return
        self._workers()
        for part in (self._persistent, self._prefetch, self._threads, self._pinned):
            if not self._nothing_to_gain():
                part()

    # --- the parts ---------------------------------------------------------------------------------------

    def _workers(self) -> None:
        """Climb: from the present number to what should fill the cores, then halfway to the neighbours of the best,
        until they touch."""
        base = self.present.settings
        points = {base.num_workers: self.present}
        first = self._fills_the_cores()
        wanted: int | None = first if base.num_workers != first else self._next_number(points)
        while wanted is not None:
            points[wanted] = self._challenge(base.but(num_workers=wanted))
            if points[wanted].error and wanted:
                self._other_method(base, wanted)
            wanted = self._next_number(points)

    def _fills_the_cores(self) -> int:
        """As many workers as keep all cores busy: more than cores where a worker mostly waits."""
        used = self.present.wanted_per_sample * self.present.figures.rate / max(1, self.present.settings.num_workers)
        wanted = self.limits.cores if used >= 0.5 or self.present.error else round(self.limits.cores / max(used, 0.01))
        return min(wanted, self.limits.most_workers)

    def _next_number(self, points: dict[int, Candidate]) -> int | None:
        """A number of workers beside the best that is not known; None if all that matter are."""
        best = self.best.settings.num_workers
        if best not in points:  # another start method leads: its neighbours are not these
            return None
        lower = max((number for number in points if number < best), default=None)
        higher = min((number for number in points if number > best), default=None)
        near = max(1, best // 4)
        if higher is None and not self._is_busy(self.best) and not self._nothing_to_gain():
            more = min(best * 2 or 1, self.limits.most_workers)
            if more > best:
                return more
        if (
            higher is not None
            and higher - best > near
            and self._between(points[higher])
            and not self._nothing_to_gain()
        ):
            return (best + higher) // 2
        if lower is None and best:
            return best // 2
        if lower is not None and best - lower > near and self._between(points[lower]):
            return (best + lower) // 2
        return None

    def _between(self, neighbour: Candidate) -> bool:
        """Something better may lie between the best and this one."""
        its, best = self.score(neighbour), self.score(self.best)
        mine, other = self.best.settings.num_workers, neighbour.settings.num_workers
        if neighbour.error or other > mine:
            return bool(neighbour.error) or other > 2 * mine or its < (1 - PLATEAU) * best
        more = mine / max(1, other)
        return its < (1 - PLATEAU) * best and best < EACH_COUNTS * more * its  # else each worker brings its share

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
        settings = self.best.settings
        if not settings.num_workers or settings.persistent_workers:
            return
        if self.best.whole or self._share_of_start(self.best) > STARTS:
            self._challenge(settings.but(persistent_workers=True))

    def _prefetch(self) -> None:
        for depth in (4, 8):
            settings = self.best.settings
            if not settings.num_workers or (settings.prefetch_factor or 0) >= depth:
                continue
            if self._challenge(settings.but(prefetch_factor=depth)) is not self.best:
                return

    def _threads(self) -> None:
        """More threads in each worker, where workers compute and cores are left over."""
        settings = self.best.settings
        spare = self.limits.cores // settings.num_workers if settings.num_workers else 1
        at_work = self.best.wanted_per_sample * self.best.figures.rate > 0.6 * settings.num_workers
        if spare > 1 and at_work:
            self._challenge(settings.but(threads=spare))

    def _pinned(self) -> None:
        if self.limits.gpu:
            self._challenge(self.best.settings.but(pin_memory=not self.best.settings.pin_memory))

    # --- measuring and comparing -------------------------------------------------------------------------

    def _challenge(self, settings: Settings) -> Candidate:
        """Measure it against the best so far; it becomes the best if it wins."""
        candidate = self.candidates.setdefault(settings, Candidate(settings))
        too_much = self._too_much(settings)
        if too_much:
            candidate.error = too_much
            return candidate
        if self.best.error or not self.best.slices:
            self._measure(candidate)
            self.best = self.best if candidate.error else candidate
            return candidate
        duel = Duel()
        self._race(self.best, candidate, duel)
        if not candidate.error and self._wins(candidate, duel):
            self._behind = min(1.0, self._behind * duel.ratio)
            self.best = candidate
        return candidate

    def _race(self, one: Candidate, other: Candidate, duel: Duel, at_least: int = 1, at_most: int = PAIRS) -> None:
        """Slices of both in turns, until it is certain which is better, or that they are equal."""
        while len(duel.ratios) < at_most:
            rates = {}
            for each in (one, other) if len(duel.ratios) % 2 == 0 else (other, one):
                rate, when = each.latest
                fresh = not duel.ratios and each is one and self._clock() - when < FRESH
                rates[each.settings] = rate if fresh else self._measure(each)
            mine, its = rates[one.settings], rates[other.settings]
            if one.error or other.error:
                break
            duel.add(self._worth(one, mine), self._worth(other, its), its / mine)
            if len(duel.ratios) >= at_least and duel.decided(1 - TIE, 1 + TIE):
                break

    def _wins(self, candidate: Candidate, duel: Duel) -> bool:
        """Clearly faster; or as fast as any, for certain, and cheaper."""
        if duel.ratio > 1 + TIE:
            return True
        cheaper = candidate.settings.cost < self.best.settings.cost
        return cheaper and duel.ratio * self._behind > 1 - TIE and duel.interval()[0] > 1 - 2 * PLATEAU

    def _measure(self, candidate: Candidate) -> float:
        """One slice more; its rate."""
        if candidate.error:
            return 0.0
        if self._clock() >= self._deadline:
            raise OutOfTime
        self.now = candidate
        try:
            trial = self._alive.get(candidate.settings)
            if trial is None:
                self._put_away(keep=(self.best.settings,))
                trial = self._alive[candidate.settings] = self._open(candidate.settings)
            chunks = trial.slice(self.slice)
            candidate.figures.chunks += chunks
            candidate.latest = Figures(chunks).rate, self._clock()
            self._note(candidate, trial)
        except (Interrupted, OutOfTime):
            raise
        except Exception as error:
            candidate.error = in_short(error)
            self._put_away(keep=tuple(settings for settings in self._alive if settings != candidate.settings))
        if self._tell is not None:
            self._tell(self)
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
            self.length = trial.length

    def _put_away(self, keep: tuple[Settings, ...]) -> None:
        for settings in [each for each in self._alive if each not in keep]:
            self._alive.pop(settings).close()

    # --- what a figure is worth --------------------------------------------------------------------------

    def score(self, candidate: Candidate) -> float:
        """Samples a second: of the training where its step is known, else of the loader, starts of passes included."""
        return self._worth(candidate, candidate.figures.rate)

    def scores(self, candidate: Candidate) -> tuple[float, float]:
        low, high = candidate.figures.interval()
        return self._worth(candidate, low), self._worth(candidate, high)

    @property
    def most(self) -> float:
        """Samples a second of the training if data cost nothing."""
        return self.step.batch / self.step.compute if self.step and self.step.compute > 0 else float("inf")

    def _worth(self, candidate: Candidate, rate: float) -> float:
        rate = self._with_starts(candidate, rate)
        if self.step is None or rate <= 0:
            return rate
        seconds = self.step.seconds(rate, candidate.cpu_per_sample, candidate.settings, self.limits.cores)
        return self.step.batch / seconds

    def _with_starts(self, candidate: Candidate, rate: float) -> float:
        if candidate.settings.persistent_workers or candidate.whole:
            return rate
        return rate * (1 - self._share_of_start(candidate, rate))

    def _share_of_start(self, candidate: Candidate, rate: float | None = None) -> float:
        """Of the time of a pass, what passes before its first batch beyond the making of it."""
        settings, rate = candidate.settings, rate or candidate.figures.rate
        if not settings.num_workers or not self.length or rate <= 0 or not candidate.figures.chunks:
            return 0.0
        per_batch = candidate.batch / rate
        starting = max(0.0, candidate.start_up - settings.num_workers * per_batch)
        return starting / (starting + self.length * per_batch)

    def _is_busy(self, candidate: Candidate) -> bool:
        """The cores are used up, and there are as many workers."""
        used = candidate.wanted_per_sample * candidate.figures.rate
        return candidate.settings.num_workers >= self.limits.cores and used >= BUSY * self.limits.cores

    def little_to_gain(self) -> bool:
        """Even if data cost nothing, the training would not be clearly faster than with the present settings."""
        return self.step is not None and self.scores(self.present)[0] * (1 + CLEARLY) >= self.most

    def _nothing_to_gain(self) -> bool:
        """Data do not limit the training with the best so far, for certain."""
        return self.step is not None and not self.best.error and self.scores(self.best)[0] >= self.most * (1 - TIE / 2)

    def _too_much(self, settings: Settings) -> str:
        known = max((each.batch_bytes for each in self.candidates.values()), default=0)
        needed = settings.ahead * known
        if self.limits.room is not None and needed > self.limits.room // 2:
            return f"not measured: its batches would take {needed / 2**20:,.0f} MiB of shared memory"
        known = max((each.worker_bytes for each in self.candidates.values()), default=0) or self.limits.process_bytes
        needed = settings.num_workers * known
        if self.limits.memory is not None and needed > self.limits.memory * MEMORY:
            return f"not measured: its workers could take {needed / 2**30:,.1f} GiB of memory"
        return ""


def in_short(error: BaseException) -> str:
    """Type and last line: of an error in a worker the message is a whole traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    name = type(error).__name__
    return last if last.startswith(name) else f"{name}: {last}" if last else name
