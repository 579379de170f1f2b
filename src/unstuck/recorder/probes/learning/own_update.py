"""An update that the script makes itself, looked for in its source where no optimizer steps: it may go wrong."""

from __future__ import annotations

from types import FrameType

from ... import flight
from ...records.learning import LostUpdate
from . import script_lines
from .losses import Losses
from .optimizers import Optimizers


class OwnUpdate:
    """Looked for once."""

    def __init__(self, losses: Losses, optimizers: Optimizers) -> None:
        self._losses, self._optimizers = losses, optimizers
        self.lost: LostUpdate | None = None
        self._spent: list[str] | None = None  # iterators at their end; None: not looked for
        self._searched = False

    def is_likely(self) -> bool:
        """No optimizer steps; of an update written by hand the first may have worked."""
        return not self._optimizers.stepping() or (flight.steps() <= 1 and not self._optimizers.built)

    def look(self, frame: FrameType | None) -> None:
        if not self._searched and not self._optimizers.built:
            from . import lost_update, used_up_update

            self._searched = True
            self.look_for_spent(frame)
            sites = [series.site[0] for series in self._losses.series.values() if series.site is not None]
            files = dict.fromkeys([*sites, *script_lines.user_files(frame)])
            self.lost = used_up_update.find(self._spent, files) or lost_update.find(files)

    def look_for_spent(self, frame: FrameType | None) -> None:
        """Iterators at their end that the training holds: while its frames are there. It is short."""
        if self._spent is None and frame is not None and not self._optimizers.built:
            from . import used_up_update

            self._spent = used_up_update.spent_names(frame)
