"""The bar of a scan, on standard error: on a terminal it moves, elsewhere a line now and then."""

from __future__ import annotations

import os
from time import monotonic

WIDTH = 28
EVERY, RARELY = 0.1, 10.0
LONG = 15.0
"""Seconds of a stream, after which it may well be one without an end."""


class Bar:
    """Shows how many samples were gone through."""

    def __init__(self, what: str, quiet: bool = False, hint: str = "Ctrl-C, or --limit N, ends it") -> None:
        self.what, self.quiet, self.hint = what, quiet, hint
        try:
            self.moves = os.isatty(2)
        except OSError:
            self.moves = False
        self.began = monotonic()
        self.shown = 0.0 if self.moves else self.began

    def __call__(self, done: int, of: int | None) -> None:
        now = monotonic()
        if self.quiet or now - self.shown < (EVERY if self.moves else RARELY):
            return
        self.shown = now
        self._write(f"\r{self._line(done, of, now)}\x1b[K" if self.moves else f"{self._line(done, of, now)}\n")

    def clear(self) -> None:
        if self.moves and not self.quiet:
            self._write("\r\x1b[K")

    def _line(self, done: int, of: int | None, now: float) -> str:
        pace = done / max(1e-9, now - self.began)
        if not of:
            hint = f" · no end in sight? {self.hint}" if now - self.began > LONG else ""
            return f"{self.what}: {done:,} samples, {pace:,.0f}/s{hint}"
        filled = int(WIDTH * done / of)
        left = (of - done) / pace if pace > 0 else 0.0
        bar = "█" * filled + "·" * (WIDTH - filled)
        return f"{self.what} {bar} {done:,} of {of:,} · {pace:,.0f}/s · {left:.0f} s left"

    @staticmethod
    def _write(text: str) -> None:
        try:
            os.write(2, text.encode("utf-8", "replace"))
        except OSError:
            pass
