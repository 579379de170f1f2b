"""The loss, read where backward is called: on a CPU every value and at once whether it is a number, on a GPU later."""

from __future__ import annotations

import sys
from collections import deque

from ... import flight, hiding, user_code
from ... import gpu as late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

POINTS = 256
RAW = 32
SURE = 16
"""Losses that are no number, after which what became of the training is told once more."""
KNOWN = 8
"""Values after which a single one moves the usual level only so far."""
SETTLED = 100
"""Values after which there is a usual level."""
RATE = 0.02
FAR = 12.0
"""Mean deviations above the usual level, and at least three times it."""
LOOKS = (1, 8, 64, 512)
"""Values at which the graph is searched for operations at their edge."""
EACH, EVERY = 64, 8
"""On a GPU: so many values are read at first, then two of every eight, one after the other."""
SERIES = 12
"""Losses told apart by the line that calls backward; a script with more of them than that is not a training."""


def _plain_value(root: Any) -> float:
    value: float = root.item()
    return value


def _itself(root: Any) -> Any:
    return root


series: dict[tuple[int, int], Series] = {}
"""By the call of backward: the identity of its code, which each keeps, and the instruction."""
when_nonfinite: Callable[[Any, FrameType | None, Series], object] | None = None
when_finite: Callable[[Any, FrameType | None, Series, float], object] | None = None
when_far: Callable[[Series, float, int, list[dict[str, object]]], object] | None = None
"""A value that came late stands out: the value, its step, the batch of that step."""
at_hand: Callable[[], list[dict[str, object]]] | None = None
"""The batch of this step."""
when_traced: Callable[[Any], object] | None = None
"""Set while a step is traced: the graph of the next loss is wanted, whatever its value."""
backwards = 0
unscale: Callable[[Any], float] = _plain_value
"""The value of a loss; where a GradScaler scaled it, another takes this place."""
unscaled: Callable[[Any], Any] = _itself
"""The same, as a tensor."""
_tensor: Any = None


class Series:
    """One loss over the whole run: its first values, then means over ever longer stretches."""

    __slots__ = (
        "_code",
        "_held",
        "_sum",
        "best",
        "count",
        "doubtful",
        "far",
        "first",
        "last",
        "nonfinite",
        "nonfinite_step",
        "points",
        "recent",
        "site",
        "spread",
        "steep",
        "stride",
        "usual",
    )

    def __init__(self, site: list[str | int] | None, code: CodeType | None = None) -> None:
        self.site, self._code = site, code
        self.first: list[float] = []
        self.points: list[tuple[int, float]] = []
        self.recent: deque[float] = deque(maxlen=RAW)
        self.stride = 1
        self.count = self.nonfinite = self._held = 0
        self.nonfinite_step = -1
        self.doubtful = False
        """It was no number some steps ago: the next value is waited for, while its graph is there."""
        self.last = self._sum = 0.0
        self.usual = self.spread = 0.0
        """Where it usually is, and how far from that."""
        self.far = False
        """The last value stood out."""
        self.steep: list[Any] = []
        """Ways to the nodes of its graph that are looked at each time."""

    def add(self, value: float, step: int) -> None:
        self.count += 1
        self.last = value
        if self.count == 1:
            self.usual = value
        off = value - self.usual
        self.far = self.count > SETTLED and off > FAR * self.spread and value > 3 * self.usual and self.spread > 0
        if self.far:
            self.usual += RATE * FAR * self.spread
        else:
            rate = RATE if self.count > 50 else 1 / self.count
            if self.count > KNOWN and off > FAR * self.spread > 0:
                off = FAR * self.spread  # one bad batch early on must not hide all later ones
            self.usual += rate * off
            self.spread += rate * ((off if off > 0 else -off) - self.spread)
        self.recent.append(value)
        if len(self.first) < RAW:
            self.first.append(value)
        self._sum += value
        self._held += 1
        if self._held < self.stride:
            return
        mean = self._sum / self._held
        self._sum, self._held = 0.0, 0
        self.points.append((step, mean))
        if len(self.points) >= POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=False)
            self.points = [(late[0], (early[1] + late[1]) / 2) for early, late in pairs]
            self.stride *= 2

    def plain(self) -> dict[str, object]:
        return {
            "site": self.site,
            "count": self.count,
            "first": self.first,
            "points": self.points,
            "recent": list(self.recent),
            "stride": self.stride,
            "last": self.last,
            "nonfinite": self.nonfinite,
            "nonfinite_step": self.nonfinite_step,
        }


def note(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Called before every backward pass, on the thread that asked for it; costs about a microsecond."""
    global backwards, _tensor
    backwards += 1
    root: Any = arguments[0] if arguments else options.get("tensors")
    if _tensor is None:
        _tensor = sys.modules["torch"].Tensor
    kind = type(root)
    if kind is not _tensor:
        if kind not in (list, tuple) or len(root) != 1 or type(root[0]) is not _tensor:
            return
        root = root[0]
    if root.numel() != 1 or not (root.is_cpu or late.away(root)) or root.is_complex() or hiding.overheard():
        return
    frame: FrameType | None = sys._getframe(2)
    if frame is not None and frame.f_code.co_name == "backward" and frame.f_back is not None:
        frame = frame.f_back  # Tensor.backward
    if frame is None:
        return
    key = (id(frame.f_code), frame.f_lasti)  # a code's own hash goes through all of it
    known = series.get(key)
    if known is None:
        if len(series) >= SERIES:
            return
        known = series[key] = Series(_site(frame), frame.f_code)
    if when_traced is not None:
        when_traced(root)
    if late.away(root) and not late.exact:
        late.collect()
        if not known.doubtful:
            if known.count < EACH or backwards % EVERY < 2:
                late.read([unscaled(root)], _arrival(known, flight.steps()))
            return
        known.doubtful = False
    value = unscale(root)
    if value - value == 0.0:  # neither infinite nor not a number
        known.add(value, flight.steps() or known.count)
        if (known.far or known.steep or known.count in LOOKS) and when_finite is not None:
            when_finite(root, frame, known, value)
        return
    known.nonfinite += 1
    if known.nonfinite_step < 0:
        known.nonfinite_step = flight.steps()
    if known.nonfinite in (1, 2, SURE) and when_nonfinite is not None:
        when_nonfinite(root, frame, known)


def _arrival(known: Series, step: int) -> Callable[[list[float]], object]:
    batch = at_hand() if at_hand is not None and known.count > SETTLED else []

    def arrived(values: list[float]) -> None:
        value = values[0]
        if value - value == 0.0:
            known.add(value, step)
            if known.far and when_far is not None:
                when_far(known, value, step, batch)
            return
        if known.nonfinite_step < 0:
            known.nonfinite_step = step
        if not known.nonfinite:
            known.doubtful = True
            return
        known.nonfinite += 1
        if known.nonfinite == SURE and when_nonfinite is not None:
            when_nonfinite(None, None, known)

    return arrived


def _site(frame: FrameType) -> list[str | int] | None:
    """The user's line nearest to the call."""
    here: FrameType | None = frame
    while here is not None and not user_code.is_user_file(here.f_code.co_filename):
        here = here.f_back
    if here is None:
        return None
    return [user_code.absolute(here.f_code.co_filename), here.f_lineno, user_code.name_of(here.f_code)]
