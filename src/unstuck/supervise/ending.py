"""What is known of how a run ended besides its exit status: who sent the signals that reached us."""

from __future__ import annotations

from unstuck.model import Sender


def sender(number: int, pid: int, uid: int, at: float) -> Sender:
    """Who sent a signal, read while that process still lives. Filled in by its own change."""
    return Sender(signal=number, pid=pid, uid=uid, at=at)
