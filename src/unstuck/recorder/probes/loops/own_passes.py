"""Which pass over the data a training without a loader is in: the loop around that of its batches says."""

from __future__ import annotations

from functools import reduce
from types import CodeType, FrameType

from ... import flight
from ... import layout as at
from ...objects import attribute
from ...records.loops import Counter, DescribedLoop, LoopFrame

MOST_CALLS = 64  # of a stack, from the step up to the function of that loop


class OwnPasses:
    """Counts the rounds of that loop by the name that counts them, as it is in sampled steps."""

    def __init__(self) -> None:
        self._code: CodeType | None = None
        self._counted = Counter()
        self._seen = self._since = 0  # the latest round, and the step at which it was first seen

    def begin(self, stack: list[FrameType], described: list[LoopFrame]) -> None:
        """In the first pass. `stack` and `described`: the innermost first."""
        around = [(frame, loop) for frame in described for loop in reversed(frame.loops)]
        inner_too = zip([None, *around], around, strict=False)
        chosen = next((pair for inner, pair in inner_too if _is_epochs(inner, pair)), None)
        if chosen is None:
            return
        where, loop = chosen
        self._code = next((frame.f_code for frame in stack if id(frame) == where.number), None)
        self._counted = loop.counts or Counter()
        self.look(stack[0])

    def look(self, frame: FrameType | None) -> None:
        for _ in range(MOST_CALLS if self._code is not None else 0):
            if frame is None:
                return
            if frame.f_code is self._code:
                name, *attributes = self._counted.name.split(".")
                value = reduce(attribute, attributes, frame.f_locals.get(name))
                if type(value) is int:
                    self._note(value)
                return
            frame = frame.f_back

    def last(self) -> None:
        """Steps that were made since that round was first seen may belong to further rounds, as many as before."""
        before = self._seen - self._counted.least
        if self._since and before > 0:
            later = (flight.steps() - self._since) * before // self._since
            self._note(min(self._seen + later, max(self._seen, self._counted.most)))

    def _note(self, value: int) -> None:
        if value >= self._counted.least and not flight.words[at.W_LOADERS]:
            self._seen, self._since = value, self._since if value == self._seen and self._since else flight.steps()
            flight.words[at.W_EPOCH] = value - self._counted.least + 1


def _is_epochs(inner: tuple[LoopFrame, DescribedLoop] | None, pair: tuple[LoopFrame, DescribedLoop]) -> bool:
    """Its rounds are passes: the script says so, or the loop inside it goes through the data."""
    counted = pair[1].counts
    if counted is None:
        return False
    through_data = inner is not None and inner[1].kind == "for" and _is_data(inner[1].iterates.text)
    return "epoch" in counted.name.lower() or through_data


def _is_data(iterated: str) -> bool:
    """Anything but so and so many rounds; `range(0, n, size)` cuts batches."""
    return not iterated.startswith(("range(", "trange(")) or iterated.count(",") >= 2
