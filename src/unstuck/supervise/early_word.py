"""One line about a standstill that is not proven yet, and one when it is over. It is no finding and counts for nothing.

Pure: stalls are parameters.
"""

from __future__ import annotations

from unstuck.families import STANDING
from unstuck.text import in_sentence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.model import Finding, Stall

MIN_STANDING = 15.0  # seconds; until then most standstills are proven, or over
MIN_STILL = 8.0  # seconds in which nothing moved: no bytes, no memory, the same functions
COMPUTES = "main-spins"  # the training itself is at work, maybe for good reason: not a word until that is certain
MIN_TIMES_LONGEST = 3.0  # the longest pause of this kind in this run: a checkpoint that is slow each time is usual


class EarlyWord:
    """Remembers what was said, so that it is said once and taken back."""

    def __init__(self, scale: float = 1.0) -> None:
        self._scale = scale
        self._said: Stall | None = None
        self._unsaid = False

    def due(self, stalls: tuple[Stall, ...]) -> Stall | None:
        """The standstill to speak about now."""
        if self._said is not None:
            return None
        self._said, self._unsaid = next((stall for stall in stalls if self._is_unusual(stall)), None), False
        return self._said

    def leave_unsaid(self) -> None:
        """About this one nothing is said, nor that it is over."""
        self._unsaid = True

    def over(self, stalls: tuple[Stall, ...]) -> Stall | None:
        """What was said, once that process has moved again."""
        said = self._said
        if said is None or any(stall.pid == said.pid and stall.since == said.since for stall in stalls):
            return None
        self._said = None
        return None if self._unsaid else said

    def _is_unusual(self, stall: Stall) -> bool:
        return (
            stall.suspect
            and stall.seams
            and not stall.excuse
            and stall.standing >= max(MIN_STANDING * self._scale, MIN_TIMES_LONGEST * stall.pace.longest)
            and stall.still >= MIN_STILL * self._scale
        )


def cause_in_words(findings: tuple[Finding, ...]) -> str | None:
    """What the rules would say if they were asked now, in the middle of a sentence; empty where they say nothing. None:
    it computes."""
    cause = next((finding for finding in findings if finding.family in STANDING), None)
    if cause is not None and cause.rule == COMPUTES:
        return None
    return in_sentence(cause.title) if cause is not None else ""
