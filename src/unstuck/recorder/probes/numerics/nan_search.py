"""What is done when a loss is NaN or infinite, and to find the line of an operation: all that goes on for some steps.

What does the search is imported when there is something to look for.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

from ... import gpu
from ...records.numerics import Birth
from ..learning.losses import Series
from ..learning.measurements import Measurements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .computed_values import Returns
    from .nan_origin import NanOrigins, Tracing

TOLD_AGAIN = 16  # losses that are NaN or infinite, after which what became of the training is told once more
MIN_DEAD = 4  # looks at a term whose gradient died, after which its line is looked for


class NanSearch:
    """Methods that give a bool: whether there is something new to tell."""

    def __init__(self, measured: Measurements) -> None:
        self._measured = measured
        self._origins: NanOrigins | None = None
        self.tracing: Tracing | None = None
        """The line of an operation is looked for: the graph of the next loss is wanted, whatever its value."""
        self._returns: Returns | None = None  # a function that computes NaN outside of any graph is looked for

    def look(self, series: Series, root: Any, value: float, frame: FrameType) -> bool:
        """The first time: look for where NaN was born, while the graph is there. The second: the training goes on, so
        its next step can show the line."""
        if series.nonfinite > 2:
            return self.goes_on(series)
        from . import nan_origin

        to = self._measured
        if self._origins is None:
            self._origins = nan_origin.NanOrigins(to.saved, to.names, to.parameters)
            to.births = self._origins.births
        if series.nonfinite == 1:
            if to.names.stale:
                to.names.find(frame)
            late = gpu.away(root) and not to.copies.exact
            self._origins.look(root, value, frame, series, to.steep.last, late=late)
            self._look_at_returns(self._origins.of(series), frame)
            return True
        birth = self._origins.of(series)
        if birth is not None and self.tracing is None and not to.compiled and not to.saved.hooked:
            self._trace(nan_origin.Tracing([*birth.operations[:2], *birth.outside[:1]], birth))
        return False

    def goes_on(self, series: Series) -> bool:
        """A further loss was NaN."""
        return series.nonfinite == TOLD_AGAIN or (self._returns is not None and self._returns.ended())

    def _look_at_returns(self, birth: Birth | None, frame: FrameType) -> None:
        from . import computed_values

        if birth is None or birth.late or not computed_values.is_wanted(birth):
            return
        birth.computed = computed_values.warned(frame)  # type: ignore[misc]  # it is not written yet
        if birth.computed is None and self._returns is None:
            self._returns = computed_values.Returns(birth)

    def trace_dead_term(self) -> None:
        term = self._measured.dead_terms.record()
        if term is not None and term.seen >= MIN_DEAD and not term.sought and self.tracing is None:
            from . import nan_origin

            term.sought = True  # type: ignore[misc]  # it is written anew
            self._trace(nan_origin.Tracing([term]))

    def _trace(self, tracing: Tracing | None) -> None:
        self.tracing = tracing if tracing is not None and tracing.on else None

    def graph_comes(self, root: Any) -> bool:
        """Of the next loss."""
        tracing = self.tracing
        found = tracing is not None and tracing.look(root)
        self._trace(tracing)
        return found

    def stepped(self) -> bool:
        if self.tracing is not None:
            self.tracing.stepped()
            self._trace(self.tracing)
        return self._returns is not None and self._returns.stepped()

    def stop(self) -> None:
        if self._returns is not None:
            self._returns.stop()
        if self.tracing is not None:
            self.tracing.stop()
            self.tracing = None
