"""What a rate is worth: to the training where its step is known, else to the loader, starts of passes included."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .candidates import Candidate, Limits
    from .step import Step

BUSY = 0.85
"""Share of the cores' time in use at which more workers cannot help."""


class Worth:
    """`length` is the number of batches of a pass, as soon as it is known."""

    def __init__(self, limits: Limits, step: Step | None) -> None:
        self.limits, self.step = limits, step
        self.length = limits.length

    def score(self, candidate: Candidate) -> float:
        """Samples a second."""
        return self.of(candidate, candidate.figures.rate)

    def scores(self, candidate: Candidate) -> tuple[float, float]:
        """Its 95 % interval."""
        low, high = candidate.figures.interval()
        return self.of(candidate, low), self.of(candidate, high)

    @property
    def most(self) -> float:
        """Samples a second of the training if data cost nothing."""
        return self.step.batch / self.step.compute if self.step and self.step.compute > 0 else float("inf")

    def of(self, candidate: Candidate, rate: float) -> float:
        rate = self._with_starts(candidate, rate)
        if self.step is None or rate <= 0:
            return rate
        seconds = self.step.seconds(rate, candidate.cpu_per_sample, candidate.settings, self.limits.cores)
        return self.step.batch / seconds

    def _with_starts(self, candidate: Candidate, rate: float) -> float:
        if candidate.settings.persistent_workers or candidate.whole:
            return rate
        return rate * (1 - self.share_of_start(candidate, rate))

    def share_of_start(self, candidate: Candidate, rate: float | None = None) -> float:
        """Of the time of a pass, what passes before its first batch beyond the making of it."""
        settings, rate = candidate.settings, rate or candidate.figures.rate
        if not settings.num_workers or not self.length or rate <= 0 or not candidate.figures.chunks:
            return 0.0
        per_batch = candidate.batch / rate
        starting = max(0.0, candidate.start_up - settings.num_workers * per_batch)
        return starting / (starting + self.length * per_batch)

    def without_starts(self, candidate: Candidate) -> float:
        """Its rate if the workers were there already; a guess where passes were measured as a whole."""
        rate = candidate.figures.rate
        if not candidate.whole or not candidate.settings.num_workers or not self.length or rate <= 0:
            return rate
        seconds = self.length * candidate.batch / rate
        return rate * seconds / max(seconds - candidate.start_up, seconds / 10)

    def is_busy(self, candidate: Candidate) -> bool:
        """The cores are used up, and there are as many workers."""
        used = candidate.wanted_per_sample * candidate.figures.rate
        return candidate.settings.num_workers >= self.limits.cores and used >= BUSY * self.limits.cores

    def is_near_the_most(self, candidate: Candidate, share: float) -> bool:
        """With it data do not limit the training, for certain: it reaches this share of what no data would allow."""
        return self.step is not None and self.scores(candidate)[0] >= self.most * share
