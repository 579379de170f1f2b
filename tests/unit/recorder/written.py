"""What probes write, read back as the supervisor reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from unstuck.observer.journals import parse
from unstuck.recorder import flight, journal
from unstuck.recorder.records import Record


@contextmanager
def written() -> Iterator[list[Any]]:
    """Records that are written meanwhile."""
    found: list[Record] = []

    def keep(record: Record) -> None:
        (read,) = parse(journal.encode(record))
        found.append(read)

    before = journal.tell, journal.write
    journal.tell = journal.write = keep
    try:
        yield found
    finally:
        journal.tell, journal.write = before


def set_steps(number: int) -> None:
    flight.state[flight.STEPS] = number


def make_step() -> int:
    """One more training step has been made."""
    set_steps(flight.steps() + 1)
    return flight.steps()
