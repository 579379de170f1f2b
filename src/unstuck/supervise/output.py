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

# The status stands on the line below the cursor, which goes back to where the script left it: a bar half drawn, or a
# question, stays as it is, and what the script prints next comes where it should.
ROOM_BELOW = "\x1bD\x1bM"
SAVE, RESTORE = "\x1b7", "\x1b8"
CLEAR_BELOW = "\x1b[J"


class Output:
    """Prints on standard error. The status line appears on a terminal only, while something stands still."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr or io.StringIO()  # there is no standard error after `2>&-`
        self.showing = False
        try:
            self.on_terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        except ValueError:
            self.on_terminal = False

    def status(self, stall: Stall | None, case: Case | None) -> None:
        """Show where it stands, or take the line away again."""
        if stall is None or case is None:
            self._clear()
            return
        if not self.on_terminal:
            return
        from unstuck.report.screen import Screen
        from unstuck.report.wording import status_line

        line = status_line(stall, case, Screen.of(self.stream))
        self._clear()
        self._write(f"{ROOM_BELOW}{SAVE}\r\n{line}{RESTORE}")
        self.showing = True

    def findings(self, case: Case, diagnosis: Diagnosis, *, stopping: bool = False) -> None:
        from unstuck.report.screen import Screen
        from unstuck.report.terminal import render

        self._clear()
        self._write(render(case, diagnosis, Screen.of(self.stream), stopping=stopping))

    def next_command(self, command: str) -> None:
        """The last line printed: what to type next."""
        self._clear()
        self._write(f"next: {command}\n")

    def text(self, words: str) -> None:
        """Exactly this."""
        self._clear()
        self._write(words)

    def line(self, text: str) -> None:
        self._clear()
        self._write(f"unstuck: {text}\n")

    def _clear(self) -> None:
        if self.showing:
            self._write(CLEAR_BELOW)
            self.showing = False

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # a closed or full stderr is no reason to disturb the run
            pass
