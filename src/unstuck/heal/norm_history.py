"""The gradient norms of the last steps, and from where on a new one is out of all proportion to them.

The scale is logarithmic and the measure robust: how far a norm lies above the upper tenth of the steps just before it,
in units of how far the upper tenth of the last steps lay above the median of those before them. Nothing knows torch.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from typing import Any

LEVEL_STEPS = 32  # of which the median is what is usual now: norms fall by orders of magnitude in a training
SPREAD_STEPS = 128  # by which their scatter is judged
MIN_STEPS = 24  # with fewer there is no telling what is usual
MIN_TIMES = 20.0  # a norm below so many times what is usual is let pass, however steady the others are
MAX_SLOWED = 3.0  # … or one that leaves an Adam a rate no more than so many times smaller
MAX_SCORE = 5.0  # robust standard deviations above the upper tenth
TENTH = 1.2816  # standard deviations from the median of a normal distribution to its upper tenth


def harmful_times(options: dict[str, Any]) -> float:
    """From how many times the usual norm on a gradient does harm, by the options of its optimizer. Steps of Adam stay
    small however large the gradient; but its square stays in the second moments, and makes later steps smaller."""
    betas = options.get("betas")
    if not isinstance(betas, (tuple, list)) or len(betas) != 2 or not isinstance(betas[1], float) or betas[1] >= 1:
        return MIN_TIMES
    return max(MIN_TIMES, math.sqrt((MAX_SLOWED**2 - 1) / (1 - betas[1])))


class Window:
    """The last so many numbers, in order of size."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.recent: deque[float] = deque()
        self._ordered: list[float] = []

    def add(self, value: float) -> None:
        self.recent.append(value)
        insort(self._ordered, value)
        if len(self.recent) > self._most:
            del self._ordered[bisect_left(self._ordered, self.recent.popleft())]

    def tenths(self, number: int) -> float:
        """What so many tenths of them do not exceed."""
        return self._ordered[len(self._ordered) * number // 10]


class NormHistory:
    """Norms as they were before anything was clipped."""

    def __init__(self, norms: Iterable[float] = (), highest: float = 0.0, min_times: float = MIN_TIMES) -> None:
        self._min_times = min_times
        self._all: deque[float] = deque(maxlen=LEVEL_STEPS + SPREAD_STEPS)
        self._level, self._above = Window(LEVEL_STEPS), Window(SPREAD_STEPS)
        self.limit = math.inf
        """A norm above it is out of proportion,"""
        self.usual = math.inf
        """and is cut down to this: what only a tenth of the last steps exceed."""
        self.highest = highest
        """What was usual at its highest: norms of a training that has converged are tiny, and one that its first steps
        had does no harm then."""
        self.add(*norms)

    def add(self, *norms: float) -> None:
        """One for each step, in their order. Limits are worked out once, after the last."""
        level, above, top = self._level, self._above, -math.inf
        for norm in norms:
            if not 0 < norm < math.inf:
                continue
            self._all.append(norm)
            value = math.log(norm)
            if len(level.recent) >= MIN_STEPS // 2:
                above.add(value - level.tenths(5))
            level.add(value)
            if len(self._all) >= MIN_STEPS:
                top = max(top, level.tenths(9))
        if top > -math.inf:
            scatter = above.tenths(9) / TENTH
            self.usual = math.exp(level.tenths(9))
            self.highest = max(self.highest, math.exp(top))
            self.limit = max(self.highest, self.usual * max(self._min_times, math.exp(min(MAX_SCORE * scatter, 600))))

    @property
    def norms(self) -> list[float]:
        """Oldest first: from these the same history can be made again."""
        return list(self._all)
