"""What the workers of a scan saw, and the board on which each shows the sample in work."""

from __future__ import annotations

import array
import mmap
import os

from ..probes.data import statistics
from ..records.data import FailedSample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import Site

W_AT, W_SINCE, W_DONE, W_COUNT, WORDS = 0, 1, 2, 3, 4
"""On the board, for each worker: the place in work, since when (0: none), samples done, and how many are in work."""
MANY = 200
"""Slow samples of which an account is kept."""
NAMED = 50
"""Samples of one error that are named."""
KINDS = 20
BUCKETS = 48
PRINTS = 1 << 25
"""Samples that are compared with one another: more would take too much memory."""


class Seen:
    """What one worker saw since it last handed over. A sample goes by its place among those that are asked for, also in
    the records here: `report` puts its number there."""

    def __init__(self) -> None:
        self.gathered = statistics.Gathered(whole=True)
        self.prints = array.array("q")
        self.places = array.array("q")
        """Of each print, the place of its sample."""
        self.unprinted = 0
        self.errors: dict[tuple[str, Site | None], Errors] = {}
        """By name of the exception and line."""
        self.slow: list[tuple[float, int]] = []
        self.times = [0] * BUCKETS
        """Samples by the bit length of their nanoseconds."""
        self.samples = self.failed = 0
        self.odd: dict[str, int] = {}
        """Why parts of samples could not be read."""

    def failing(self, place: int, kind: str, message: str, site: Site | None) -> None:
        self.failed += 1
        if (kind, site) in self.errors or len(self.errors) < KINDS:
            self.errors.setdefault((kind, site), Errors()).add([FailedSample(sample=place, message=message)], 1)

    def merge(self, other: Seen) -> None:
        self.gathered.merge(other.gathered)
        if len(self.prints) < PRINTS:
            self.prints += other.prints
            self.places += other.places
        self.unprinted += other.unprinted
        for key, errors in other.errors.items():
            self.errors.setdefault(key, Errors()).add(errors.first, errors.count)
        self.slow = sorted(self.slow + other.slow, reverse=True)[:MANY]
        self.times = [mine + theirs for mine, theirs in zip(self.times, other.times, strict=True)]
        self.samples += other.samples
        self.failed += other.failed
        for why, count in other.odd.items():
            self.odd[why] = self.odd.get(why, 0) + count

    def median(self) -> float:
        """Seconds of a sample, from the histogram: the middle of the bucket."""
        half, count = sum(self.times) / 2, 0
        for bits, number in enumerate(self.times):
            count += number
            if number and count >= half:
                return 0.75 * 2.0**bits / 1e9
        return 0.0


class Errors:
    """Samples that raise the same error at the same line: the first of them, and how many there are."""

    def __init__(self) -> None:
        self.first: list[FailedSample] = []
        self.count = 0

    def add(self, samples: list[FailedSample], count: int) -> None:
        self.count += count
        self.first = sorted([*self.first, *samples], key=lambda each: each.sample or 0)[:NAMED]


class Board:
    """A few words a worker, in a file that both sides map: it can be read while the worker hangs."""

    def __init__(self, path: str, workers: int) -> None:
        size = workers * WORDS * 8
        with open(path, "a+b") as file:
            if os.fstat(file.fileno()).st_size < size:
                os.posix_fallocate(file.fileno(), 0, size)
            self.words = memoryview(mmap.mmap(file.fileno(), size)).cast("q")
