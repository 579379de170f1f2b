"""The processes that make a training's batches: profiled while it waits for them, their copied pages counted.

Light: a word or a line of `/proc` a process at each tick, until that says that there is something to measure.
"""

from __future__ import annotations

import os

from unstuck.observer.gauge import WORKER
from unstuck.recorder import layout as at
from unstuck.recorder.cores import allowed, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.model import PageCopy, Strain
    from unstuck.observer.gauge import Gauge
    from unstuck.observer.loader_profile import Probe
    from unstuck.supervise.flight_folder import FlightFolder

LONG_WAIT_SECONDS = 3.0  # one such wait is profiled before the run says that it starves: it may be over by then
CROWDED_SHARE = 0.15  # the training is ready and has no processor for this share of
CROWDED_SECONDS = 5.0  # so many seconds, with more workers than processors: then that is profiled, once
SECONDS_BETWEEN_PROFILES = 600.0  # of the same training
PROFILES_KEPT = 4
OWN_AFTER_SECONDS = 6.0  # of steps without a loader, until it is seen whether
OWN_TRIES = 2  # in a row: stacks may change too fast to be read, or the first time was unlike the others
MIN_OWN_STEPS = 8  # of so many,
MIN_BETWEEN_SHARE = 0.5  # this share is spent in the script's own code: then that is profiled

PAGE = os.sysconf("SC_PAGE_SIZE")
MIN_ANONYMOUS_BYTES = 100_000_000  # a worker with less has not much to copy
FIRST_COUNT_SECONDS = 4.0  # until a worker's pages are counted again; then after twice as long each time
COPIED_BYTES_WORTH_RULES = 250_000_000  # in all workers together
DEAD_WORKERS_KEPT = 64


class BatchMakers:
    """By training process: how often it said that it starves, and when its batch makers were last profiled."""

    def __init__(self, flights: FlightFolder) -> None:
        self.flights = flights
        self.strains: list[Strain] = []
        self._starved: dict[int, int] = {}
        self._next: dict[int, float] = {}
        self._waited_long: set[int] = set()
        self._crowded: set[int] = set()
        self._first_step: dict[int, float] = {}
        self._tried: dict[int, int] = {}
        self._delays: dict[int, tuple[float, float]] = {}
        self._probe: Probe | None = None

    def tick(self, now: float) -> bool:
        """True when something has been measured."""
        if self._probe is not None:
            return self._take_result()
        training = (gauge for gauge in self.flights.living if gauge.trains)
        main = next((gauge for gauge in training if self._is_worth_profiling(gauge, now)), None)
        if main is not None:
            self._profile(main)
        return False

    def _is_worth_profiling(self, main: Gauge, now: float) -> bool:
        """It starves, has waited long for one batch, or is crowded out by its own workers."""
        starved = int(main.words[at.W_STARVED])
        if starved > self._starved.get(main.pid, 0) and now >= self._next.get(main.pid, 0.0):
            self._starved[main.pid], self._next[main.pid] = starved, now + SECONDS_BETWEEN_PROFILES
            return True
        if not starved and main.pid not in self._waited_long and self._waits_long(main, now):
            self._waited_long.add(main.pid)
            return True
        if not main.words[at.W_LOADERS]:
            return self._may_feed_itself(main, now)
        if main.pid not in self._crowded and self._is_crowded(main, now):
            self._crowded.add(main.pid)
            return True
        return False

    def _may_feed_itself(self, main: Gauge, now: float) -> bool:
        """Without a loader, most of the time of its steps goes into the script's own code: that is not the model
        alone, which takes longer backwards than forwards."""
        first = self._first_step.setdefault(main.pid, now) if main.words[at.W_STEP] >= MIN_OWN_STEPS else now
        if now - first < OWN_AFTER_SECONDS or now < self._next.get(main.pid, 0.0):
            return False
        self._next[main.pid] = now + OWN_AFTER_SECONDS
        whole = between = 0
        for entry in range(min(int(main.words[at.W_RING]), at.RING_STEPS)):
            start = at.RING + entry * at.STEP_WORDS
            _, took, data, backward, optimizer = main.words[start : start + 5].tolist()
            whole, between = whole + took, between + took - data - backward - optimizer
        if between < MIN_BETWEEN_SHARE * whole:
            return False
        tried = self._tried[main.pid] = self._tried.get(main.pid, 0) + 1
        if tried % OWN_TRIES == 0 or any(strain.pid == main.pid for strain in self.strains):
            self._next[main.pid] = now + SECONDS_BETWEEN_PROFILES
        return True

    def _is_crowded(self, main: Gauge, now: float) -> bool:
        began, before = self._delays.setdefault(main.pid, (now, delay(main.pid)))
        if now - began < CROWDED_SECONDS:
            return False
        delayed = delay(main.pid)
        self._delays[main.pid] = now, delayed
        if delayed - before < CROWDED_SHARE * (now - began):
            return False
        return len(self._workers(main)) > allowed(main.pid)

    def _waits_long(self, main: Gauge, now: float) -> bool:
        """One batch has been waited for some time, and it is being made."""
        phase, since = at.present(main.words)
        if phase != at.DATA or now - since / 1e9 < LONG_WAIT_SECONDS:
            return False
        return bool(main.words[at.W_FETCHING]) or any(g.phase == at.FETCH for g in self._workers(main))

    def _workers(self, main: Gauge) -> list[Gauge]:
        workers = [g for g in self.flights.living if g.words[at.W_ROLE] == WORKER]
        own = [g for g in workers if g.words[at.W_PPID] == main.pid]
        if own or [g for g in self.flights.living if g.trains] != [main]:
            return own
        return workers  # started by a server of forks: those of the only training there is

    def _profile(self, main: Gauge) -> None:
        from unstuck.observer.loader_profile import Probe
        from unstuck.observer.tree import descendants

        pids = {gauge.pid for gauge in self.flights.living} | set(descendants(main.pid)) | {main.pid}
        others = [gauge.pid for gauge in self.flights.living if gauge.pid != main.pid]
        helpers = None if main.words[at.W_LOADERS] else others
        self._probe = Probe(main.path, [gauge.path for gauge in self._workers(main)], sorted(pids), helpers)
        self._probe.start()

    def _take_result(self) -> bool:
        probe = self._probe
        if probe is None or probe.is_alive():
            return False
        self._probe = None
        if probe.fault is not None:
            raise probe.fault
        if probe.result is None:
            return False
        self.strains = [*self.strains, probe.result][-PROFILES_KEPT:]
        return True

    def close(self) -> None:
        """The run is over."""
        if self._probe is not None:
            self._probe.stop()
            self._take_result()


def delay(pid: int) -> float:
    """Seconds that the main thread of a process was ready to run and had no processor; 0 where the kernel is silent."""
    words = read_text(f"/proc/{pid}/schedstat").split()
    return int(words[1]) / 1e9 if len(words) > 1 else 0.0


# --- pages of forked workers that were shared with their parent and have become their own ------------------------


class WorkerPages:
    """One worker: changed pages in bytes, private and shared, at first and as last counted."""

    __slots__ = ("began", "first", "gap", "last", "last_at", "next")

    def __init__(self, now: float, pages: tuple[int, int]) -> None:
        self.began = self.last_at = now
        self.first = self.last = pages
        self.gap, self.next = FIRST_COUNT_SECONDS, now + FIRST_COUNT_SECONDS

    def count(self, now: float, pid: int) -> None:
        pages = dirty_pages(pid)
        if pages is not None:
            self.last, self.last_at = pages, now
        self.gap *= 2
        self.next = now + self.gap


class PageCopies:
    def __init__(self, flights: FlightFolder) -> None:
        self.flights = flights
        self._workers: dict[int, WorkerPages | None] = {}
        """None: it has too little to count."""
        self._worth = COPIED_BYTES_WORTH_RULES

    def tick(self, now: float) -> bool:
        """True when so much was copied that the rules should hear of it."""
        for gauge in self.flights.living:
            pid = gauge.pid
            if gauge.words[at.W_ROLE] != WORKER or not gauge.words[at.W_FORKED]:
                continue
            if pid not in self._workers:
                pages = dirty_pages(pid) if anonymous_bytes(pid) >= MIN_ANONYMOUS_BYTES else None
                much = pages is not None and pages[1] >= MIN_ANONYMOUS_BYTES
                self._workers[pid] = WorkerPages(now, pages) if pages is not None and much else None
                self._forget_dead()
            elif (worker := self._workers[pid]) is not None and now >= worker.next:
                worker.count(now, pid)
        copied = sum(max(0, worker.last[0] - worker.first[0]) for worker in self._workers.values() if worker)
        if copied < self._worth:
            return False
        self._worth = 2 * copied
        return True

    def _forget_dead(self) -> None:
        living = {gauge.pid for gauge in self.flights.living}
        for pid in [pid for pid in self._workers if pid not in living][:-DEAD_WORKERS_KEPT]:
            del self._workers[pid]

    def all(self) -> tuple[PageCopy, ...]:
        from unstuck.model import PageCopy

        living = {gauge.pid for gauge in self.flights.living}
        return tuple(
            PageCopy(pid, worker.last_at - worker.began, *worker.first, *worker.last)
            for pid, worker in self._workers.items()
            if worker is not None and (pid in living or worker.last_at > worker.began)
        )


def anonymous_bytes(pid: int) -> int:
    """Bytes of a process that are in memory and belong to no file."""
    words = read_text(f"/proc/{pid}/statm").split()
    return (int(words[1]) - int(words[2])) * PAGE if len(words) > 2 else 0


def dirty_pages(pid: int) -> tuple[int, int] | None:
    """Bytes of changed pages, private and shared, summed up by the kernel; None where it does not tell."""
    lines = (line.partition(":") for line in read_text(f"/proc/{pid}/smaps_rollup").splitlines())
    sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in lines if name in ("Private_Dirty", "Shared_Dirty")}
    return (sizes["Private_Dirty"], sizes["Shared_Dirty"]) if len(sizes) == 2 else None
