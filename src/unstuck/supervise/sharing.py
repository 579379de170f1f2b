"""When to look which open files workers share: when they have just begun, then ever more rarely.

Light: what asks the kernel is loaded when there are forked workers to ask about.
"""

from __future__ import annotations

from unstuck.observe.gauge import WORKER
from unstuck.recorder import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.model import SharedFile
    from unstuck.supervise.hangar import Hangar

FIRST = 1.0
"""Seconds between the first two looks at the same workers; then each time twice as many."""
LONGEST_GAP = 300.0
LOOKS = 6
"""Times that new workers are looked at soon: where each pass starts new ones, the first passes tell enough."""
KEPT = 8
"""Offsets kept of a file."""


class Sharing:
    def __init__(self, hangar: Hangar) -> None:
        self.hangar = hangar
        self._files: dict[tuple[tuple[int, ...], int, str], SharedFile] = {}
        self._known: dict[int, tuple[int, ...]] = {}
        self._next: dict[int, float] = {}
        self._gap: dict[int, float] = {}
        self._soon: dict[int, int] = {}

    def tick(self, now: float) -> None:
        groups: dict[int, list[int]] = {}
        for gauge in self.hangar.open.values():
            words = gauge.words
            if words[at.W_ROLE] == WORKER and words[at.W_FORKED]:
                groups.setdefault(int(words[at.W_PPID]), []).append(gauge.pid)
        for parent, workers in groups.items():
            pids = tuple(sorted(workers))
            if self._known.get(parent) != pids and self._soon.get(parent, 0) < LOOKS:
                self._known[parent] = pids
                self._soon[parent] = self._soon.get(parent, 0) + 1
                self._gap[parent], self._next[parent] = FIRST, now
            if now >= self._next[parent]:
                self._next[parent] = now + self._gap[parent]
                self._gap[parent] = min(2 * self._gap[parent], LONGEST_GAP)
                self._look(parent, list(pids), now)

    def _look(self, parent: int, workers: list[int], now: float) -> None:
        from dataclasses import replace

        from unstuck.observe.shared_files import shared_files

        try:
            found = shared_files(parent, workers, now)
        except PermissionError:
            raise
        except OSError:  # they are gone
            return
        for file in found:
            key = (file.pids, file.fd, file.path)
            before = self._files.get(key)
            if before is not None:
                file = replace(file, offsets=(*before.offsets, *file.offsets)[-KEPT:])
            self._files[key] = file
        while len(self._files) > 64:
            del self._files[next(iter(self._files))]

    def files(self) -> tuple[SharedFile, ...]:
        return tuple(self._files.values())
