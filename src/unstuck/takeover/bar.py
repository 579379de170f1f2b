"""Progress on standard error: on a terminal a bar that moves, elsewhere a line now and then."""

from __future__ import annotations

import os
from time import monotonic

WIDTH = 24  # characters of the bar
EVERY_SECONDS, RARELY_SECONDS = 0.1, 10.0  # between two updates: on a terminal, elsewhere

LONG_SECONDS = 15.0  # of a stream, after which it may well be one without an end


class Bar:
    """`first`: seconds until the first line where there is no terminal."""

    def __init__(self, what: str, quiet: bool = False, first: float = RARELY_SECONDS) -> None:
        self._what, self._quiet = what, quiet
        try:
            self._moves = os.isatty(2)
        except OSError:
            self._moves = False
        self._drawn = False
        self._next = monotonic() + (0.0 if self._moves else first)

    def show(self, share: float | None, text: str) -> None:
        """`share` of the whole that is done, where that is known."""
        now = monotonic()
        if self._quiet or now < self._next:
            return
        self._next = now + (EVERY_SECONDS if self._moves else RARELY_SECONDS)
        filled = 0 if share is None else int(WIDTH * min(1.0, share))
        bar = "" if share is None else "█" * filled + "·" * (WIDTH - filled) + " "
        self._drawn = self._moves
        self._write(f"\r{self._cut(f'{self._what} {bar}{text}')}\x1b[K" if self._moves else f"{self._what}: {text}\n")

    def line(self, text: str) -> None:
        """One that stays."""
        if not self._quiet:
            self.clear()
            self._write(f"unstuck: {text}\n")

    def begin(self, text: str) -> None:
        """Said at once to somebody who sits and waits; elsewhere the first line that counts something comes soon."""
        if self._moves:
            self.line(text)

    def clear(self) -> None:
        if self._drawn:
            self._write("\r\x1b[K")
            self._drawn = False

    @staticmethod
    def _cut(line: str) -> str:
        try:
            return line[: max(20, os.get_terminal_size(2).columns - 1)]
        except OSError:
            return line

    @staticmethod
    def _write(text: str) -> None:
        try:
            os.write(2, text.encode("utf-8", "replace"))
        except OSError:
            pass


def counted(done: int, of: int | None, seconds: float) -> str:
    """How many samples, how fast, and how long it will still take."""
    pace = done / max(1e-9, seconds)
    if not of:
        hint = " · endless? Ctrl-C or a limit stops it" if seconds > LONG_SECONDS else ""
        return f"{done:,} samples, {pace:,.0f}/s{hint}"
    left = f" · {(of - done) / pace:.0f} s left" if pace > 0 else ""
    return f"{done:,} of {of:,} · {pace:,.0f}/s{left}"
