"""What a few short measurements say about a rate, and how surely."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

# Student's t for 95 %, by degrees of freedom; 2.0 from there on.
_T = (12.7, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13)
_ONE_SIDED = (2.92, 2.35, 2.13, 2.02, 1.94, 1.89)
"""The same for one side only, from two degrees of freedom on."""
LEAST = 0.01
"""Half the width of an interval, as a share of the rate, below which nothing is believed: machines drift."""
ALONE = 0.3
"""The same where there is one measurement only."""


@dataclass(frozen=True)
class Chunk:
    """Samples that came within some seconds."""

    samples: float
    seconds: float


@dataclass
class Figures:
    """All chunks of one candidate."""

    chunks: list[Chunk] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Samples per second; 0 if nothing was measured."""
        seconds = sum(chunk.seconds for chunk in self.chunks)
        return sum(chunk.samples for chunk in self.chunks) / seconds if seconds > 0 else 0.0

    def interval(self) -> tuple[float, float]:
        """95 % interval of the rate, from the spread of the chunks."""
        rate, number = self.rate, len(self.chunks)
        if number < 2:
            return rate * (1 - ALONE), rate * (1 + ALONE)
        seconds = sum(chunk.seconds for chunk in self.chunks)
        spread = sum((chunk.samples - rate * chunk.seconds) ** 2 for chunk in self.chunks)
        error = (spread * number / (number - 1)) ** 0.5 / seconds
        half = max(LEAST * rate, (_T[number - 2] if number - 2 < len(_T) else 2.0) * error)
        return max(0.0, rate - half), rate + half


@dataclass
class Duel:
    """Two candidates measured side by side, slice by slice: what the second is worth to the first."""

    ratios: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    """The same for the loader alone."""

    def add(self, one: float, other: float, rates: float) -> None:
        self.ratios.append(other / one)
        self.rates.append(rates)

    @property
    def ratio(self) -> float:
        return _middle(self.ratios)

    @property
    def gain(self) -> float:
        return _middle(self.rates)

    def interval(self) -> tuple[float, float]:
        """From the lowest to the highest pair: of four pairs it misses the middle once in eight times."""
        if len(self.ratios) < 2:
            return self.ratio * (1 - ALONE), self.ratio / (1 - ALONE)
        return min(self.ratios) - LEAST, max(self.ratios) + LEAST

    def is_better(self) -> bool:
        """The second is the better one, with 95 % certainty: from the spread of the pairs, where there are some."""
        number = len(self.ratios)
        if number < 3:
            return self.interval()[0] > 1
        logs = [math.log(max(ratio, 1e-12)) for ratio in self.ratios]
        mean = sum(logs) / number
        error = (sum((each - mean) ** 2 for each in logs) / (number - 1) / number) ** 0.5
        return bool(mean > _ONE_SIDED[min(number, 8) - 3] * error)

    def decided(self, worse: float, better: float) -> bool:
        """It lies on one side of both marks, or between them."""
        low, high = self.interval()
        return low > better or high < worse or (worse < low and high < better)


def _middle(values: list[float]) -> float:
    """Geometric mean of the middle half: a neighbour on the machine is not what is measured."""
    if not values:
        return 1.0
    ordered = sorted(values)
    cut = len(ordered) // 4
    kept = ordered[cut : len(ordered) - cut]
    product = 1.0
    for value in kept:
        product *= max(value, 1e-12)
    return float(product ** (1 / len(kept)))
