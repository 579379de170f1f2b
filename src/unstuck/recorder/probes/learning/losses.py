"""Losses over the whole run, told apart by the line that calls backward: on a CPU every value, on a GPU some, later."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import isfinite as is_finite
from sys import float_info
from types import CodeType, FrameType
from typing import Any

from ... import flight, loading, user_code
from ...gpu import Copies
from ...records import Site
from ...records.learning import Loss
from ...records.numerics import DrawnBatch

MAX_POINTS = 256
RAW_VALUES = 32  # the first and the last values of a loss that are kept as they were
MAX_SERIES = 12  # a script with more calls of backward than that is not a training
MAX_PENDING = 4096
ROUND = 32  # values of sampled steps, from which the order of several losses is known
RATE = 0.02  # at which the usual level follows
EARLY = 8  # values after which a single one moves the usual level only so far
SETTLED = 100  # values after which there is a usual level
SOON = SETTLED - 64  # … after which one that stands out must be handed over at once: so many may come in one go
FAR = 12.0  # mean deviations above the usual level at which a value stands out, if it is also …
FAR_TIMES = 3  # … so many times that level
NEAR = 4.0  # mean deviations that a usual value may be off
GPU_FIRST, GPU_EVERY = 64, 8  # on a GPU so many are read at first, then two of so many, one after the other
FINITE = (-float_info.max, float_info.max)


class Series:
    """One loss over the whole run: its first values, then means over ever longer stretches."""

    def __init__(self, site: Site | None, code: CodeType | None = None) -> None:
        self.site, self._code = site, code
        self.first: list[float] = []
        self.points: list[tuple[int, float]] = []
        self.recent: deque[float] = deque(maxlen=RAW_VALUES)
        self.stride = 1
        self.count = self.nonfinite = self._held = 0
        self.nonfinite_step = -1
        self.doubtful = False
        """It was NaN or infinite some steps ago: the next value is waited for, while its graph is there."""
        self.last = self._sum = 0.0
        self.usual = self.spread = 0.0  # where it usually is, and how far from that
        self.far = False  # the last value stood out
        self.steep: list[tuple[tuple[int, ...], str]] = []
        """Paths to the nodes of its graph that are looked at each time, and their names."""
        self.look_at = 1  # number of the value at which its graph is searched for such nodes

    def add(self, value: float, step: int) -> None:
        self.count += 1
        self.last = value
        self._move(value)
        self.recent.append(value)
        if len(self.first) < RAW_VALUES:
            self.first.append(value)
        self._sum += value
        self._held += 1
        if self._held == self.stride:
            self.points.append((step, self._sum / self._held))
            self._sum, self._held = 0.0, 0
            if len(self.points) >= MAX_POINTS:
                pairs = zip(self.points[::2], self.points[1::2], strict=False)
                self.points = [(late[0], (early[1] + late[1]) / 2) for early, late in pairs]
                self.stride *= 2

    def _move(self, value: float) -> None:
        """The usual level follows; a value that stands out moves it only so far."""
        if self.count == 1:
            self.usual = value
        off, most = value - self.usual, FAR * self.spread
        self.far = self.count > SETTLED and off > most > 0 and value > FAR_TIMES * self.usual
        if self.far:
            self.usual += RATE * most
            return
        rate = RATE if self.count > 50 else 1 / self.count
        if self.count > EARLY and off > most > 0:
            off = most  # one bad batch early on must not hide all later ones
        self.usual += rate * off
        self.spread += rate * (abs(off) - self.spread)

    def broke(self, step: int) -> None:
        """A value was NaN or infinite."""
        self.nonfinite += 1
        if self.nonfinite_step < 0:
            self.nonfinite_step = step

    @property
    def limit(self) -> float:
        """What a value that stands out is above."""
        if self.count < SOON or not self.spread > 0:
            return FINITE[1]
        return max(self.usual + FAR * self.spread, FAR_TIMES * self.usual)

    def record(self) -> Loss:
        return Loss(
            site=self.site, count=self.count, first=self.first, points=self.points, recent=list(self.recent),
            stride=self.stride, last=self.last, nonfinite=self.nonfinite, nonfinite_step=self.nonfinite_step,
        )  # fmt: skip


class Losses:
    """All losses of the training. `stood_out(series, value, step, batch)` hears of values that came late."""

    def __init__(
        self, copies: Copies, stood_out: Callable[[Series, float, int, list[DrawnBatch] | None], object]
    ) -> None:
        self.copies, self._stood_out = copies, stood_out
        self.series: dict[tuple[int, int], Series] = {}
        """By the call of backward: the identity of its code, which each keeps, and the instruction."""
        self._pending: list[float] = []
        """Values of ordinary steps: whose they are is known at the next one that comes with its frame."""
        self._order: deque[Series] = deque(maxlen=ROUND)  # whose the last values were
        self._read_at = 0

    def of(self, frame: FrameType) -> Series | None:
        """The loss on which this call of backward is made; None where there are too many."""
        if frame.f_globals.get("__name__") == "torch._tensor" and frame.f_back is not None:
            frame = frame.f_back  # Tensor.backward
        key = (id(frame.f_code), frame.f_lasti)  # a code's own hash goes through all of it
        known = self.series.get(key)
        if known is None and len(self.series) < MAX_SERIES:
            known = self.series[key] = Series(user_code.site_of(frame), frame.f_code)
        if known is not None:
            self.settle(known)
        return known

    def read(self, values: list[float], frame: FrameType | None) -> None:
        """Values that were read, in order; `frame` called backward on the last, which is the only one then."""
        if frame is None:
            self._pending += values[: MAX_PENDING - len(self._pending)]
            return
        series = self.of(frame)
        if series is not None:
            for value in values:
                self.take(series, value)

    def take(self, series: Series, value: float) -> None:
        """A value that is known to be of this loss."""
        self._order.append(series)
        if is_finite(value):
            series.add(value, flight.steps() or series.count)
        else:
            series.broke(flight.steps())

    def settle(self, following: Series | None = None) -> None:
        """Values that wait go where they belong; `following`: the loss that comes right after them, if there is one."""
        pending, self._pending = self._pending, []
        start, self._read_at = self._read_at, flight.steps()
        owners = self._owners(len(pending), following)
        for number, (series, value) in enumerate(zip(owners, pending, strict=False), 1):
            step = start + number * (self._read_at - start) // (len(pending) + 1)
            series.add(value, step or series.count)
            if series.far:
                self._stood_out(series, value, step, None)
        self._order.extend(owners[-ROUND:])

    def _owners(self, count: int, following: Series | None) -> list[Series]:
        """Whose the next `count` values are, if the losses take turns as they did; empty where they do not."""
        if len(self.series) == 1:
            return list(self.series.values()) * count
        order = list(self._order)
        turns = next((n for n in range(1, len(order) // 2 + 1) if order[n:] == order[:-n]), 0)
        if not turns:
            return []
        expected = [order[index % turns - turns] for index in range(count + 1)]
        if following is not None and expected[-1] is not following:
            self._order.clear()
            return []
        return expected[:-1]

    def passes(self) -> int:
        """Backward passes, or calls of `autograd.grad`."""
        return max(flight.state[flight.BACKWARDS], *(series.count for series in self.series.values()), 0)

    def limits(self) -> tuple[float, float]:
        """Between these a value of any loss need not be handed over."""
        known = [series for series in self.series.values() if series.count]
        if not known:
            return FINITE
        lowest = min(series.limit for series in known)
        usual = max(series.usual + NEAR * series.spread for series in known)
        return FINITE[0], lowest if lowest > usual else max(series.limit for series in known)

    # --- on a GPU ----------------------------------------------------------------------------------------------------

    def read_later(self, series: Series, plain: Any, again: Callable[[Series], object]) -> bool:
        """Have the value copied, if this one is wanted. False: it must be waited for. `again` hears of further values
        that are NaN or infinite."""
        if self.copies.exact or series.doubtful:
            series.doubtful = False
            return False
        if series.count < GPU_FIRST or flight.state[flight.BACKWARDS] % GPU_EVERY < 2:
            self.copies.read([plain], self._arrival(series, again))
        return True

    def _arrival(self, series: Series, again: Callable[[Series], object]) -> Callable[[list[float]], object]:
        step, batch = flight.steps(), loading.batches() if series.count > SETTLED else None

        def arrived(values: list[float]) -> None:
            value = values[0]
            if is_finite(value):
                series.add(value, step or series.count)
                if series.far:
                    self._stood_out(series, value, step, batch)
            elif series.nonfinite:
                series.broke(step)
                again(series)
            else:
                series.doubtful = True
                if series.nonfinite_step < 0:
                    series.nonfinite_step = step

        return arrived
