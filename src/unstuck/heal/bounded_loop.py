"""`unstuck.bounded(loader, …)`: a pass over a loader that ends, whatever the loader does."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Literal, TypeVar

from unstuck.heal.act_lines import say
from unstuck.text import seconds

Batch = TypeVar("Batch")


def bounded(
    loader: Iterable[Batch], max_batches: int | None = None, max_seconds: float | None = None
) -> Bounded[Batch]:
    """Each pass over it ends after `max_batches`, or with the first batch after `max_seconds`; whichever comes first.

    Without a bound each pass has as many batches as the loader says it has: one that goes on after that is endless. The
    time is looked at between batches: a batch that never comes is a matter for `unstuck.DataLoader(sample_timeout=…)`.
    """
    if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
        raise TypeError(f"bounded() takes a loader or something else to iterate over, not {type(loader).__name__!r}")
    if max_batches is not None and (not isinstance(max_batches, int) or isinstance(max_batches, bool)):
        raise TypeError(f"bounded(): max_batches must be a whole number, not {max_batches!r}")
    if max_seconds is not None and (not isinstance(max_seconds, (int, float)) or isinstance(max_seconds, bool)):
        raise TypeError(f"bounded(): max_seconds must be a number, not {max_seconds!r}")
    for name, value in (("max_batches", max_batches), ("max_seconds", max_seconds)):
        if value is not None and not value > 0:
            raise ValueError(f"bounded(): {name} must be above 0, not {value!r}")
    if max_batches is None and max_seconds is None and _length(loader) is None:
        raise ValueError(
            "this loader has no length, so it says nothing about where a pass ends: "
            "use bounded(loader, max_batches=1000) or bounded(loader, max_seconds=600)"
        )
    return Bounded(loader, max_batches, max_seconds)


class Bounded(Generic[Batch]):
    """What `unstuck.bounded()` returns: iterate over it in place of the loader, whose attributes it has too."""

    def __init__(self, loader: Iterable[Batch], max_batches: int | None, max_seconds: float | None) -> None:
        self.loader, self.max_batches, self.max_seconds = loader, max_batches, max_seconds
        self.stopped: Literal["max_batches", "max_seconds", "length", None] = None
        """Which bound ended the last pass; None where the loader itself ended first, or the loop was left."""
        self._said = False

    def __iter__(self) -> Iterator[Batch]:
        self.stopped = None
        most, length = self.max_batches, None
        if most is None and self.max_seconds is None:
            most = length = _length(self.loader)
        began, taken = time.monotonic(), 0
        batches = iter(self.loader)
        while most is None or taken < most:
            if self.max_seconds is not None and time.monotonic() - began >= self.max_seconds:
                self.stopped = "max_seconds"
                break
            try:
                batch = next(batches)
            except StopIteration:
                return
            taken += 1
            yield batch
        else:  # as many as allowed: one more is not even fetched
            self.stopped = "length" if length is not None else "max_batches"
        if self.stopped != "length" and not self._said:
            self._said = True  # of every pass it would be noise
            bound = f"{self.stopped}={getattr(self, self.stopped)!r}"
            say("bounded", f"the pass ends after {taken:,} batches in {seconds(time.monotonic() - began)} ({bound})")

    def __len__(self) -> int:
        length = _length(self.loader)
        known = [number for number in (length, self.max_batches) if number is not None]
        if not known:
            raise TypeError("this loader has no length, and neither has a pass of max_seconds over it")
        return min(known)

    def __getattr__(self, name: str) -> Any:
        if name in ("loader", "__setstate__"):  # not there yet: a copy is being made
            raise AttributeError(name)
        return getattr(self.loader, name)


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except (TypeError, NotImplementedError):  # a DataLoader of a stream has a __len__ that raises
        return None
