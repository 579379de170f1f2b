"""What a training step takes besides its data, and what a loader's rate makes of it."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .settings import Settings

HEADROOM = 1.1
"""A loader must be faster than the step by so much before it is said not to limit it."""


@dataclass(frozen=True)
class Step:
    """Measured over the first batches of a training."""

    compute: float
    """Seconds from having a batch to asking for the next."""
    cpu: float
    """Processor seconds of the training process meanwhile."""
    batch: float
    """Samples."""
    wait: float = 0.0
    """Seconds it waited for a batch, as it happened."""
    batches: int = 0

    def seconds(self, rate: float, cpu_per_sample: float, settings: Settings, cores: int) -> float:
        """A step with a loader of this rate: without workers one after the other, with them side by side, as far as
        the cores go round."""
        if rate <= 0:
            return float("inf")
        data = self.batch / rate
        if settings.num_workers == 0:
            return self.compute + data
        crowded = (self.cpu + cpu_per_sample * self.batch) / cores
        return max(self.compute, HEADROOM * data if HEADROOM * data > self.compute else 0.0, crowded)
