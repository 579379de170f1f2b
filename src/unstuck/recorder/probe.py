"""What a probe is: an instance that hears events, keeps what it measured, and writes it as records."""

from __future__ import annotations


class Probe:
    """Made when the first event comes that it wants (the table is in `dispatch`); one of a kind in a process.

    Each event is a method of that name. A fault in one is noted once under `name`, and the probe hears nothing more.
    """

    name = ""
    governed: frozenset[str] = frozenset()
    """Events that are dear: they come only while the governor has time for them; else `missed` is called."""

    def __init__(self) -> None:
        self.forget()

    def missed(self, event: str) -> None:
        """An event of `governed` was left out."""

    def forget(self) -> None:
        """At the beginning, and in a forked child: what its parent measured is not its own, and must not be freed or
        written here."""

    def last(self) -> None:
        """At the end of the process: write what was not written yet."""

    def remove(self) -> None:
        """Take out what it put into torch or the interpreter. Also called when it is switched off."""


def is_due(times: int) -> bool:
    """The first three times, then at every power of two: ever more rarely."""
    return times < 4 or not times & (times - 1)
