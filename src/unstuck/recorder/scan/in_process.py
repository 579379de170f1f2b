"""A scan in the script's own process, for data that no other process can read. A sample that hangs is interrupted."""

from __future__ import annotations

import signal
import sys
import threading
from time import monotonic_ns

from ..probes.data import loader_source
from ..records.data import HungSample
from .seen import W_AT, W_SINCE
from .worker import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import Site
    from .scan_pass import Progress, Scan
    from .seen import Seen

TICK = 0.1
NOT_FORKED = "CUDA in forked subprocess"
"""What torch says there."""


def is_needed(seen: Seen) -> bool:
    """A sample could not be had because its process is a forked one: it would be had here."""
    said = (each.message for errors in seen.errors.values() for each in errors.first[:1])
    return any(NOT_FORKED in message for message in said)


def run(scan: Scan, progress: Progress) -> None:
    worker = Worker(scan.plan, None, scan.words, 0)
    watch = _Watch(scan, progress)
    watch.start()
    try:
        if scan.plan.keys is None:
            worker.stream()
        else:
            step = scan.plan.batched or 1
            for at in range(0, len(scan.plan.keys), step):
                _fetch(worker, list(range(at, min(at + step, len(scan.plan.keys)))), watch)
        _merge(scan, worker)
        again = [(place, *worker.again(place)) for place in scan.again.asked()] if scan.plan.keys is not None else []
        scan.again.came(again)
    except KeyboardInterrupt:
        if not watch.take():
            scan.interrupted = True
    finally:
        watch.over.set()
        watch.join()
        _merge(scan, worker)


def _merge(scan: Scan, worker: Worker) -> None:
    worker.stack()
    scan.seen.merge(worker.seen)
    worker.seen = type(worker.seen)()


def _fetch(worker: Worker, places: list[int], watch: _Watch) -> None:
    try:
        worker.fetch(places)
    except KeyboardInterrupt:
        worker.words[W_SINCE] = 0
        if not watch.take():
            raise


class _Watch(threading.Thread):
    """Shows how far it is, and interrupts what takes too long."""

    def __init__(self, scan: Scan, progress: Progress) -> None:
        super().__init__(daemon=True)
        self.scan, self.progress = scan, progress
        self.main = threading.get_ident()
        self.over = threading.Event()
        self.hung: HungSample | None = None

    def run(self) -> None:
        while not self.over.wait(TICK):
            try:
                self.progress(self.scan.done(), self.scan.count)
            except KeyboardInterrupt:
                self._interrupt()
                return
            since = int(self.scan.words[W_SINCE])
            standing_for = (monotonic_ns() - since) / 1e9
            if since and standing_for > self.scan.seconds and self.hung is None:
                place = int(self.scan.words[W_AT])
                self.hung = HungSample(sample=place, seconds=standing_for, site=self._site())
                self._interrupt()

    def _interrupt(self) -> None:
        """A real signal: it wakes what sleeps or waits in the kernel."""
        signal.pthread_kill(self.main, signal.SIGINT)

    def _site(self) -> Site | None:
        return loader_source.calling(sys._current_frames().get(self.main))

    def take(self) -> bool:
        """The interrupt was ours."""
        hung, self.hung = self.hung, None
        if hung is not None and not self.scan.again.began:
            self.scan.hung.append(hung)
        return hung is not None
