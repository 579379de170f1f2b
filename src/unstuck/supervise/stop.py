"""Ending a training and all it started: as Ctrl-C does, then as a scheduler does, then the whole tree at once."""

from __future__ import annotations

import os
import signal
import time

from unstuck.observer.gauge import stat_fields

SECONDS_TO_SIGTERM = 5.0  # after SIGINT


class Stopper:
    """Carried out step by step from the supervisor's loop, so that signals are still passed on meanwhile."""

    def __init__(self, pid: int, grace: float) -> None:
        self.pid, self.grace = pid, grace
        self.began = time.monotonic()
        self.members = tree_of(pid)
        self._sent_sigterm = False
        _send(pid, signal.SIGINT)

    def tick(self, now: float) -> None:
        waited = now - self.began
        if waited >= self.grace:
            self.end_tree()
        elif waited >= min(SECONDS_TO_SIGTERM, self.grace / 2) and not self._sent_sigterm:
            self._sent_sigterm = True
            _send(self.pid, signal.SIGTERM)

    def end_tree(self) -> None:
        """End the training and every process it had when the stop began or has now."""
        self.members = {**tree_of(self.pid), **self.members}
        kill(self.members)


def tree_of(pid: int) -> dict[int, bytes]:
    """A process and all it started, each after its parent: pid and start time, which together name it for good."""
    try:
        from unstuck.observer.tree import descendants

        below = descendants(pid)
    except Exception:  # whatever happens, the process itself can be ended
        below = []
    return {member: _start_time(member) for member in (pid, *below)}


def kill(members: dict[int, bytes]) -> None:
    """Each before those it started: none must see a child end and go on."""
    for pid, started in members.items():
        if started and started == _start_time(pid):  # the number may be another's by now
            _send(pid, signal.SIGKILL)


def _start_time(pid: int) -> bytes:
    return b"".join(stat_fields(pid)[19:20])


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass
