"""Samples that a scan fetches once more before it names them: slow ones, and some that look the same as others."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .scan_pass import Scan

SLOW = 16
GROUPS = 32
"""Groups of duplicates of which two samples are fetched again,"""
LISTED = 4000
"""and duplicates that are put in groups."""
SLOWEST, TIMES = 0.2, 30
"""A slow sample takes this many seconds, and as many times what half of the samples take."""


class Again:
    """What is fetched again, and what came of it."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.began = False
        self.duplicated = 0
        self.groups: list[list[int]] = []
        self._prints: dict[int, int] = {}
        """Of the samples in the groups, the first time."""
        self._took: dict[int, float] = {}
        self._now: dict[int, int] = {}

    def asked(self) -> list[int]:
        """Places of samples."""
        self.began = True
        self.find()
        checked = self.groups[:: max(1, len(self.groups) // GROUPS)][:GROUPS] if self.scan.plan.keys is not None else []
        slow = [place for took, place in self.scan.seen.slow if took > self.limit()]
        return list(dict.fromkeys([*slow[:SLOW], *(place for group in checked for place in group[:2])]))

    def came(self, found: list[tuple[int, float, int]]) -> None:
        for place, took, seen in found:
            self._took[place], self._now[place] = took, seen

    def limit(self) -> float:
        return max(SLOWEST, TIMES * self.scan.seen.median())

    def slow(self) -> list[tuple[float, int]]:
        """Those that are slow each time. A stream cannot be asked again."""
        limit = self.limit()
        found = [(took, place) for took, place in self.scan.seen.slow if took > limit]
        if self.scan.plan.keys is None:
            return found
        return [(min(took, self._took[place]), place) for took, place in found if self._took.get(place, 0.0) > limit]

    def same(self) -> tuple[list[list[int]], int]:
        """Groups of samples with the very same content, and how many of them are too many. Where a sample is another
        one each time, two that were the same once say nothing: then only those count that were so twice."""
        if self.scan.plan.keys is None:
            self.find()
            return self.groups, self.duplicated
        moved = {place for place, now in self._now.items() if place in self._prints and now != self._prints[place]}
        if not moved:
            checked = any(place in self._prints for place in self._now)
            return (self.groups, self.duplicated) if checked else ([], 0)
        sure = [[place for place in group if place in self._now and place not in moved] for group in self.groups]
        sure = [group for group in sure if len(group) > 1]
        return sure, sum(len(group) - 1 for group in sure)

    def find(self) -> None:
        """Samples with one print, in groups."""
        torch, seen = sys.modules["torch"], self.scan.seen
        if not len(seen.prints):
            return
        prints, places = (
            torch.frombuffer(seen.prints, dtype=torch.int64),
            torch.frombuffer(seen.places, dtype=torch.int64),
        )
        order = torch.argsort(prints)
        ordered = prints[order]
        twins = torch.nonzero(ordered[1:] == ordered[:-1]).flatten()
        self.duplicated = int(twins.numel())
        groups: dict[int, set[int]] = {}
        for at in twins[:LISTED].tolist():
            pair = (int(places[order[at]]), int(places[order[at + 1]]))
            groups.setdefault(int(ordered[at]), set()).update(pair)
        self.groups = sorted(sorted(group) for group in groups.values())
        self._prints = {place: key for key, group in groups.items() for place in group}
