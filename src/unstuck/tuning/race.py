"""Measures candidates side by side: two loaders are alive at a time at most, the leader and its challenger.

They are measured in turns: a machine that slows down for a while slows both, and only slices side by side are compared.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median

from ..takeover.interrupts import Interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .worker_settings import Settings
    from .worth import Worth

T_95 = (12.7, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)  # Student's t by degrees of freedom; then 2.1
DRIFT = 0.01  # share of a rate below which no difference is believed: machines drift
ALONE = 0.3  # share by which a rate may be wrong where there is one measurement only
TIE = 0.03  # two scores nearer than this are equal: the cheaper one is taken
MOST_PAIRS = 4  # slices of each in a race
FRESH_SECONDS = 3.0  # for which a slice still counts as side by side with the next
IN_WORKER = "in DataLoader worker process"  # how torch begins the message of an error that its worker caught


@dataclass(frozen=True)
class Chunk:
    """Samples that came within some seconds."""

    samples: float
    seconds: float


def rate_of(chunks: list[Chunk]) -> float:
    """Samples per second; 0 if nothing was measured."""
    seconds = sum(chunk.seconds for chunk in chunks)
    return sum(chunk.samples for chunk in chunks) / seconds if seconds > 0 else 0.0


@dataclass
class Candidate:
    """One set of settings and what is known about it."""

    settings: Settings
    chunks: list[Chunk] = field(default_factory=list)
    slices: int = 0
    latest: tuple[float, float] = (0.0, float("-inf"))  # rate of the last slice, and when it was taken
    start_up: float = 0.0
    cpu_per_sample: float = 0.0
    wanted_per_sample: float = 0.0
    """The same with the time it waited for a core: on a machine that others use too, this is what it needs."""
    whole: bool = False  # its passes were measured as a whole
    batch: float = 1.0  # samples of a batch
    batch_bytes: int = 0
    worker_bytes: int = 0
    error: str = ""
    refuses: bool = False  # the error comes out of the script's own code, in a worker

    @property
    def rate(self) -> float:
        return rate_of(self.chunks)

    def interval(self) -> tuple[float, float]:
        """95 % interval of the rate, from the spread of the chunks."""
        rate, number = self.rate, len(self.chunks)
        if number < 2:
            return rate * (1 - ALONE), rate * (1 + ALONE)
        seconds = sum(chunk.seconds for chunk in self.chunks)
        spread = sum((chunk.samples - rate * chunk.seconds) ** 2 for chunk in self.chunks)
        error = (spread * number / (number - 1)) ** 0.5 / seconds
        half = max(DRIFT * rate, (T_95[number - 2] if number - 2 < len(T_95) else 2.1) * error)
        return max(0.0, rate - half), rate + half


@dataclass
class Duel:
    """Two candidates measured side by side, slice by slice: what the second is worth compared with the first."""

    ratios: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)  # the same for the loader alone

    @property
    def ratio(self) -> float:
        return median(self.ratios) if self.ratios else 1.0

    @property
    def gain(self) -> float:
        return median(self.rates) if self.rates else 1.0

    def interval(self) -> tuple[float, float]:
        """From the lowest to the highest pair."""
        if len(self.ratios) < 2:
            return self.ratio * (1 - ALONE), self.ratio / (1 - ALONE)
        return min(self.ratios) - DRIFT, max(self.ratios) + DRIFT

    def is_decided(self) -> bool:
        """All pairs say that it is better, or worse, or equal."""
        low, high = self.interval()
        return low > 1 + TIE or high < 1 - TIE or (low > 1 - TIE and high < 1 + TIE)

    def is_better(self) -> bool:
        """The second is the better one: in all pairs, or of eight in all but one; a single pair must be far apart."""
        better = sum(ratio > 1 for ratio in self.ratios)
        return self.interval()[0] > 1 if len(self.ratios) < 3 else better >= len(self.ratios) - len(self.ratios) // 8


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
        self._open, self._worth, self._length, self._clock, self._tell = open_trial, worth, length, clock, tell
        self._alive: dict[Settings, Any] = {}

    def race(self, one: Candidate, other: Candidate, duel: Duel, at_least: int = 1, at_most: int = MOST_PAIRS) -> None:
        """Slices of both in turns, until it is certain which is better, or that they are equal. What is known when the
        time is over is in `duel`."""
        while len(duel.ratios) < at_most:
            rates = {}
            for runner in (one, other) if len(duel.ratios) % 2 == 0 else (other, one):
                rate, when = runner.latest
                fresh = not duel.ratios and runner is one and self._clock() - when < FRESH_SECONDS
                rates[runner.settings] = rate if fresh else self.measure(runner)
            mine, its = rates[one.settings], rates[other.settings]
            if one.error or other.error:
                break
            duel.ratios.append(self._worth.of(other, its) / self._worth.of(one, mine))
            duel.rates.append(its / mine)
            if len(duel.ratios) >= at_least and duel.is_decided():
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
                self.close_all(keep=(self.leader.settings,))
                trial = self._alive[candidate.settings] = self._open(candidate.settings)
            chunks = trial.slice(self._length)
            candidate.chunks += chunks
            candidate.latest = rate_of(chunks), self._clock()
            self._note(candidate, trial)
        except (Interrupted, OutOfTime):
            raise
        except Exception as error:
            candidate.error, candidate.refuses = in_short(error), IN_WORKER in str(error)
            self.close_all(keep=tuple(settings for settings in self._alive if settings != candidate.settings))
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

    def close_all(self, keep: tuple[Settings, ...] = ()) -> None:
        for settings in [settings for settings in self._alive if settings not in keep]:
            self._alive.pop(settings).close()


def in_short(error: BaseException) -> str:
    """Type and last line: of an error in a worker the message is a whole traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    name = type(error).__name__
    return last if last.startswith(name) else f"{name}: {last}" if last else name
