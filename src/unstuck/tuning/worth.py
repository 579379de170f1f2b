"""What a rate is worth: to the training where its step is known, else to the loader, starts of passes included."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..takeover.loaders_in_use import Step
    from .race import Candidate
    from .search_limits import Limits

BUSY = 0.85  # share of the cores' time in use at which more workers cannot help
HEADROOM = 1.1  # a loader must be faster than the step by so much before it is said not to limit it


class Worth:
    """`length` is the number of batches of a pass, as soon as it is known."""

    def __init__(self, limits: Limits, step: Step | None) -> None:
        self.limits, self.step = limits, step
        self.length = limits.length

    def score(self, candidate: Candidate) -> float:
        """Samples a second."""
        return self.of(candidate, candidate.rate)

    def scores(self, candidate: Candidate) -> tuple[float, float]:
        """Its 95 % interval."""
        low, high = candidate.interval()
        return self.of(candidate, low), self.of(candidate, high)

    def of(self, candidate: Candidate, rate: float) -> float:
        if not candidate.settings.persistent_workers and not candidate.whole:
            rate *= 1 - self.share_of_start(candidate, rate)
        if self.step is None or rate <= 0:
            return rate
        return self.step.batch / self._step_seconds(self.step, candidate, rate)

    def _step_seconds(self, step: Step, candidate: Candidate, rate: float) -> float:
        """A step with a loader of this rate: without workers one after the other, with them side by side, as far as
        the cores go round."""
        data = step.batch / rate
        if not candidate.settings.num_workers:
            return step.compute + data
        crowded = (step.cpu + candidate.cpu_per_sample * step.batch) / self.limits.cores
        return max(step.compute, HEADROOM * data if HEADROOM * data > step.compute else 0.0, crowded)

    def share_of_start(self, candidate: Candidate, rate: float) -> float:
        """Of the time of a pass, what passes before its first batch beyond the making of it."""
        workers = candidate.settings.num_workers
        if not workers or not self.length or rate <= 0 or not candidate.chunks:
            return 0.0
        per_batch = candidate.batch / rate
        starting = max(0.0, candidate.start_up - workers * per_batch)
        return starting / (starting + self.length * per_batch)

    def without_starts(self, candidate: Candidate) -> float:
        """Its rate if the workers were there already; a guess where passes were measured as a whole."""
        rate = candidate.rate
        if not candidate.whole or not candidate.settings.num_workers or not self.length or rate <= 0:
            return rate
        seconds = self.length * candidate.batch / rate
        return rate * seconds / max(seconds - candidate.start_up, seconds / 10)

    def is_busy(self, candidate: Candidate) -> bool:
        """The cores are used up, and there are as many workers."""
        used = candidate.wanted_per_sample * candidate.rate
        return candidate.settings.num_workers >= self.limits.cores and used >= BUSY * self.limits.cores

    def is_near_the_most(self, candidate: Candidate, share: float) -> bool:
        """With it data do not limit the training, for certain: it reaches this share of what free data would allow."""
        if self.step is None or self.step.compute <= 0:
            return False
        return self.scores(candidate)[0] >= share * self.step.batch / self.step.compute
