"""Whether the code in work tries the same thing again and again, and what that is."""

from __future__ import annotations

import os

from unstuck.model import PathFact
from unstuck.rules.hang.standstill import Standstill

TRIES = 5
"""Attempts within one sample that make a habit of it."""


def target_fact(still: Standstill) -> PathFact | None:
    flight = still.flight
    if flight is None or not flight.attempt_target:
        return None
    return next((fact for fact in still.case.paths if fact.path == flight.attempt_target), None)


def fails_again(still: Standstill) -> bool:
    """It opened or connected to something again and again within the sample, and the last try cannot succeed."""
    flight = still.flight
    if flight is None or flight.attempts < TRIES:
        return False
    fact = target_fact(still)
    if fact is None:
        return is_address(flight.attempt_target)
    return bool(fact.error) or not fact.exists


def sleeps_again(still: Standstill) -> bool:
    flight = still.flight
    return flight is not None and flight.sleeps >= 2


def is_address(target: str) -> bool:
    host, colon, port = target.rpartition(":")
    return bool(host and colon) and port.isdigit()


def polled_path(still: Standstill) -> str:
    """Expression of the path whose existence the loop around the thread keeps testing; empty if it tests none."""
    return next((frame.polls for frame in still.thread.frames if frame.polls), "")


def lock_like(path: str) -> bool:
    """Named as lock files are named."""
    name = os.path.basename(path).lower()
    return "lock" in name or name.endswith((".pid", ".lck", ".busy"))
