"""Pages of forked workers that were shared with their parent and have become their own.

Light: a line of `statm` a worker; the kernel's sums over all pages only where there is much to copy, and rarely.
"""

from __future__ import annotations

import os

from unstuck.observer.gauge import WORKER
from unstuck.recorder import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.model import PageCopy
    from unstuck.supervise.flight_folder import FlightFolder

PAGE = os.sysconf("SC_PAGE_SIZE")
MUCH = 100_000_000
"""Bytes of anonymous memory from which on a worker's pages are counted."""
FIRST = 4.0
"""Seconds until a worker's pages are counted again; then after twice as long each time."""
WORTH = 250_000_000
"""Bytes copied in all, from which on the rules are called."""
KEPT = 64


class Seen:
    """One worker: what it had at first, and as last counted."""

    __slots__ = ("began", "first", "gap", "last", "last_at", "next")

    def __init__(self, now: float, pages: tuple[int, int]) -> None:
        self.began = self.last_at = now
        self.first = self.last = pages
        self.gap, self.next = FIRST, now + FIRST

    def count(self, now: float, pid: int) -> None:
        pages = dirty(pid)
        if pages is not None:
            self.last, self.last_at = pages, now
        self.gap *= 2
        self.next = now + self.gap


class Pages:
    def __init__(self, hangar: FlightFolder) -> None:
        self.hangar = hangar
        self._seen: dict[int, Seen | None] = {}
        self._called = WORTH

    def tick(self, now: float) -> bool:
        """True when so much was copied that the rules should hear of it."""
        for gauge in self.hangar.open.values():
            w, pid = gauge.words, gauge.pid
            if w[at.W_ROLE] != WORKER or not w[at.W_FORKED]:
                continue
            if pid not in self._seen:
                pages = dirty(pid) if anonymous(pid) >= MUCH else None
                self._seen[pid] = Seen(now, pages) if pages is not None and pages[1] >= MUCH else None
                self._forget()
            elif (seen := self._seen[pid]) is not None and now >= seen.next:
                seen.count(now, pid)
        copied = sum(max(0, seen.last[0] - seen.first[0]) for seen in self._seen.values() if seen is not None)
        if copied < self._called:
            return False
        self._called = 2 * copied
        return True

    def _forget(self) -> None:
        living = {gauge.pid for gauge in self.hangar.open.values()}
        for pid in [pid for pid in self._seen if pid not in living][:-KEPT]:
            del self._seen[pid]

    def copies(self) -> tuple[PageCopy, ...]:
        from unstuck.model import PageCopy

        living = {gauge.pid for gauge in self.hangar.open.values()}
        return tuple(
            PageCopy(pid, seen.last_at - seen.began, seen.first[0], seen.first[1], *seen.last)
            for pid, seen in self._seen.items()
            if seen is not None and (pid in living or seen.last_at > seen.began)
        )


def anonymous(pid: int) -> int:
    """Bytes of a process that are in memory and belong to no file."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            fields = file.read().split()
        return (int(fields[1]) - int(fields[2])) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def dirty(pid: int) -> tuple[int, int] | None:
    """Bytes of changed pages: its own, and those it shares; None where the kernel does not say."""
    found = {}
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                name, _, rest = line.partition(b":")
                if name in (b"Private_Dirty", b"Shared_Dirty"):
                    found[name] = int(rest.split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        return None
    return (found[b"Private_Dirty"], found[b"Shared_Dirty"]) if len(found) == 2 else None
