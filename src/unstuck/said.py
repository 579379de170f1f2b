"""What the helper of `unstuck.watch()` says, back in the process that is watched: findings, line by line.

A line holds all findings as they are then, and a page of HTML about them.
"""

from __future__ import annotations

import json
import threading
from typing import IO, TYPE_CHECKING, Any

from unstuck.model import Finding
from unstuck.serial import from_plain

if TYPE_CHECKING:
    from collections.abc import Callable

CLOSE_SECONDS = 5.0  # that a callback may take after the watch has ended


class Said:
    """One line of the helper's."""

    def __init__(self, line: bytes) -> None:
        raw: dict[str, Any] = json.loads(line)
        self.findings = [from_plain(Finding, plain) for plain in raw["findings"]]
        self.html = str(raw["html"])


class Listener:
    """A thread that waits for findings: the one that trains may be stuck. It takes no signal and holds nothing."""

    def __init__(
        self,
        stream: IO[bytes],
        on_finding: Callable[[Finding], object] | None,
        show: Callable[[str], object] | None,
    ) -> None:
        self._stream, self._on_finding, self._show = stream, on_finding, show
        self._known: set[tuple[object, ...]] = set()
        self._thread = threading.Thread(target=self._listen, name="unstuck findings", daemon=True)
        self._thread.start()

    def close(self) -> None:
        if self._thread is not threading.current_thread():  # on_finding may stop the watch
            self._thread.join(CLOSE_SECONDS)

    def _listen(self) -> None:
        with self._stream as lines:
            for line in lines:
                self._hear(Said(line))

    def _hear(self, said: Said) -> None:
        if self._show is not None and said.html:
            self._show(said.html)
        for finding in said.findings:
            key = finding.rule, finding.where.pid, finding.severity, finding.withdrawn
            if key in self._known or self._on_finding is None:
                continue
            self._known.add(key)
            try:
                self._on_finding(finding)
            except Exception:
                import traceback

                traceback.print_exc()
                self._on_finding = None  # it fails once, and is not called again
