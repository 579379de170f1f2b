"""Ending a hung training: ask as Ctrl-C does, then as a scheduler does, then end the whole tree."""

from __future__ import annotations

import os
import signal
import time

from unstuck.observer.gauge import stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ASK_AGAIN = 5.0
"""Seconds after SIGINT before SIGTERM."""


class Stopper:
    """Carried out step by step from the supervisor's loop, so that signals are still passed on meanwhile."""

    def __init__(self, pid: int, grace: float, tree: Callable[[], list[int]]) -> None:
        self.pid, self.grace, self.tree = pid, grace, tree
        self.began = time.monotonic()
        self.members = {member: _began(member) for member in (pid, *tree())}
        self._sent = 0
        self._send(signal.SIGINT)

    def tick(self, now: float) -> None:
        waited = now - self.began
        if waited >= self.grace:
            self.end_tree()
        elif waited >= min(ASK_AGAIN, self.grace / 2) and self._sent < 2:
            self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        self._sent += 1
        _kill(self.pid, number)

    def end_tree(self) -> None:
        """End the training and every process it had when the stop began or has now."""
        for pid in self.tree():
            self.members.setdefault(pid, _began(pid))
        for pid, began in self.members.items():
            if began and began == _began(pid):  # the number may be another's by now
                _kill(pid, signal.SIGKILL)


def _began(pid: int) -> bytes:
    """When it began, which with its number is its name for good; empty if it is gone."""
    return b"".join(stat_fields(pid)[19:20])


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass
