"""Whether the code in work tries the same thing again and again, and what that is."""

from __future__ import annotations

import os

from unstuck.model import Frame, PathFact
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.hang.work import looks_of

TRIES = 5
"""Attempts within one sample that make a habit of it."""


def retried(still: Standstill) -> str:
    """What the loop in work tries again and again in vain, as its source says; only where the process itself says
    nothing of its attempts."""
    flight = still.flight
    if flight is None or not flight.inferred or not still.in_sample:
        return ""
    return next((f.tries for f in still.thread.frames if f.user and f.tries), "")


UNNAMED = "?"  # as observe.retries has it


def retrying_frame(still: Standstill) -> Frame | None:
    """Where the loop is that tries again."""
    return next((f for f in still.thread.frames if f.user and f.tries), None) if retried(still) else None


def target_fact(still: Standstill) -> PathFact | None:
    flight = still.flight
    if flight is not None and flight.inferred:
        expression = retried(still)
        return next((f for f in still.case.paths if f.expression == expression and f.pid == still.process.pid), None)
    if flight is None or not flight.attempt_target:
        return None
    return next((fact for fact in still.case.paths if fact.path == flight.attempt_target), None)


def fails_again(still: Standstill) -> bool:
    """It opened or connected to something again and again within the sample, and the last try cannot succeed."""
    flight, fact = still.flight, target_fact(still)
    if flight is not None and flight.inferred:
        return fact is not None and (bool(fact.error) or not fact.exists)
    if flight is None or flight.attempts < TRIES:
        return False
    if fact is None:
        return is_address(flight.attempt_target)
    return bool(fact.error) or not fact.exists


def sleeps_again(still: Standstill) -> bool:
    """It slept, woke and slept again: by its own count, or by the kernel's between looks that found it asleep."""
    flight = still.flight
    if flight is not None and flight.sleeps >= 2:
        return True
    seen = [thread for _, thread in looks_of(still)]
    asleep = [t for t in seen if t.wait is not None and t.wait.kind == "sleep"]
    return len(asleep) >= 2 and asleep[-1].switches - asleep[0].switches >= 2


def is_address(target: str) -> bool:
    host, colon, port = target.rpartition(":")
    return bool(host and colon) and port.isdigit()


def polled_path(still: Standstill) -> str:
    """Expression of the lock file that the innermost loop of the user's waits to be rid of; empty if none."""
    frame = next((f for f in still.thread.frames if f.user or f.polls), None)
    return frame.polls if frame else ""


def lock_like(path: str) -> bool:
    """Named as lock files are named."""
    name = os.path.basename(path).lower()
    return "lock" in name or name.endswith((".pid", ".lck", ".busy"))
