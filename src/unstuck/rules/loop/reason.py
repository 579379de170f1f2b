"""Why something that a loop waits for can never come true."""

from __future__ import annotations

from dataclasses import dataclass

from unstuck.recorder.records import Site


@dataclass(frozen=True)
class Reason:
    """Why something can never come true: in short, and what there is to add."""

    short: str
    more: str = ""
    observed: bool = False  # it rests on values that moved, not only on what does not change
    proven: bool = True  # as far as the script could be read
    by_chance: bool = False  # it may come true once, after very long
    site: Site | None = None  # of the statement that is wrong,
    fix: str = ""  # and what to do about it; empty: the condition is to be corrected

    @property
    def text(self) -> str:
        return self.short + self.more
