"""Paired differences and a bootstrap interval for their mean."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """Mean of the paired differences with a 95 % bootstrap interval."""

    mean: float
    low: float
    high: float
    pairs: int


def interval(differences: Sequence[float], resamples: int = 4000, trim: float = 0.1) -> Interval:
    """A tenth of the pairs is cut off at each end first: a neighbour on the machine is not what is measured."""
    cut = int(len(differences) * trim)
    kept = sorted(differences)[cut : len(differences) - cut or None]
    chance = random.Random(0)
    means = sorted(_mean(chance.choices(kept, k=len(kept))) for _ in range(resamples))
    return Interval(_mean(kept), means[int(0.025 * resamples)], means[int(0.975 * resamples)], len(differences))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
