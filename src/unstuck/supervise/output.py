"""What the supervisor prints while the run goes on: findings on standard error when there are any, else nothing."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from unstuck.model import Case, Stall
    from unstuck.rules.diagnose import Diagnosis

STATUS_AFTER = 10.0  # seconds of standing still before the status line is shown

# The status stands on the last line of the screen, which does not scroll meanwhile: a bar half drawn, or a question,
# stays as it is, what the script prints next comes where it should, and none of it runs into the status.
ROOM_BELOW = "\x1bD\x1bM"
SAVE, RESTORE = "\x1b7", "\x1b8"
MIN_ROWS = 5  # a screen with fewer lines has none to spare


class Output:
    """Prints on standard error. The status line appears on a terminal only, while something stands still."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr or io.StringIO()  # there is no standard error after `2>&-`
        self._last_row = 0
        """Of the screen, while the status is shown there."""
        try:
            self.on_terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        except ValueError:
            self.on_terminal = False

    @property
    def showing(self) -> bool:
        return self._last_row > 0

    def status(self, stall: Stall | None, case: Case | None) -> None:
        """Show where it stands, or take the line away again."""
        if stall is None or case is None:
            self._clear()
            return
        if not self.on_terminal:
            return
        from unstuck.report.screen import Screen
        from unstuck.report.wording import status_line

        rows = self._size()[1]
        if rows < MIN_ROWS:
            return
        line = status_line(stall, case, Screen.of(self.stream))
        if rows != self._last_row:  # it is new, or the window got another size
            self._write(f"{ROOM_BELOW}{SAVE}\x1b[1;{rows - 1}r{RESTORE}")
            self._last_row = rows
        self._write(f"{SAVE}\x1b[{rows};1H\x1b[2K{line}{RESTORE}")

    def findings(self, case: Case, diagnosis: Diagnosis, *, stopping: bool = False) -> None:
        from unstuck.report.screen import Screen
        from unstuck.report.terminal import render

        self._clear()
        self._write(render(case, diagnosis, Screen.of(self.stream), stopping=stopping))

    def next_command(self, command: str) -> None:
        """The last line printed: what to type next."""
        self._clear()
        self._write(f"{self._line_start()}next: {command}\n")

    def text(self, words: str) -> None:
        """Exactly this."""
        self._clear()
        self._write(words)

    def line(self, text: str) -> None:
        self._clear()
        self._write(f"{self._line_start()}unstuck: {text}\n")

    def _clear(self) -> None:
        if self._last_row:
            self._write(f"{SAVE}\x1b[r\x1b[{self._last_row};1H\x1b[2K{RESTORE}")
            self._last_row = 0

    def _line_start(self) -> str:
        """To the next line, unless the cursor is at the start of one: spaces wrap only behind a bar half drawn."""
        if not self.on_terminal:
            return ""
        return " " * (self._size()[0] - 1) + "\r\x1b[K"

    def _size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            columns, rows = os.get_terminal_size(self.stream.fileno())
        except (OSError, ValueError):
            return 1, 0
        return max(1, columns), rows

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # a closed or full stderr is no reason to disturb the run
            pass
