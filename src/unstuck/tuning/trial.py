"""Measures one candidate: a clone of the loader, alive between its slices, gone with all its workers when closed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from itertools import pairwise

from ..recorder import tensors
from ..takeover.interrupts import Interrupted, Patience
from ..takeover.loaders_in_use import samples_in
from .clone import clone
from .race import Chunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .worker_settings import Settings

CHUNKS = 6  # into which a slice is divided, for the spread
AT_MOST = 4  # times its length that a slice may take where batches are slow
FAREWELL_SECONDS = 3.0  # that workers have to end by themselves


class Trial:
    """`slice()` measures a little more; `start_up` is the time from asking for the first batch to having it."""

    def __init__(
        self,
        loader: Any,
        settings: Settings,
        *,
        timeout: float,
        patience: Patience | None = None,
        take: Callable[[Any], object] | None = None,
        size: int | None = None,
        skip: int = 0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`take` is called with each batch (a copy to the GPU); `size` is the number of samples in a batch, if it is
        always the same; the first pass begins `skip` batches further on."""
        self.settings = settings
        self._take, self._size, self._clock = take, size, clock
        self._patience = patience or Patience()
        self._round = max(1, settings.num_workers)
        self._workers: list[Any] = []
        self.loader: Any = None
        self._iterator: Any = None
        self._given, self._skip = 0, skip
        self.length: int | None = None
        """Batches of a pass, once one has ended."""
        self.whole = False
        """A pass is so short that its begin and end are part of what is measured."""
        self.start_up = 0.0
        self.cpu = self.wanted = self.cpu_samples = 0.0
        """Processor seconds used; used or waited for, where others had the cores; for so many samples."""
        self._failed = False
        self.worker_bytes = 0
        """Memory that a worker has for itself."""
        self.batch, self.batch_bytes = 1.0, 0
        """Samples and bytes of a batch."""
        self._left_at = 0.0
        self._per_batch = 0.0
        try:
            with _Quiet():
                self.loader = clone(loader, settings, timeout=timeout, skip=skip)
            began = clock()
            self._begin()
            self._next()
            self.start_up = clock() - began
        except StopIteration:
            self.close()
            raise ValueError("the loader gives no batches") from None
        except BaseException:
            self._failed = True
            self.close()
            raise

    # --- measuring ---------------------------------------------------------------------------------------

    def slice(self, seconds: float) -> list[Chunk]:
        """Measure for about so long; at least one round of all workers, however long it takes."""
        try:
            chunks = self._passes(seconds) if self.whole else self._steady(seconds)
        except BaseException:
            self._failed = True
            raise
        self._left_at = self._clock()
        self.worker_bytes = max(self.worker_bytes, *map(_private_bytes, self._workers[:2]), 0)
        return chunks

    def _steady(self, seconds: float) -> list[Chunk]:
        """Within a pass, without what was waiting before: whole rounds, for workers deliver in step."""
        rounds: list[Chunk] = []
        try:
            self._settle()
            busy, begin = self._spent(), self._clock()
            mark = begin
            while mark - begin < seconds or (len(rounds) < 3 and mark - begin < AT_MOST * seconds):
                samples = 0.0
                for _ in range(self._round):
                    samples += self._next()
                now = self._clock()
                rounds.append(Chunk(samples, now - mark))
                mark = now
            self._count(busy, rounds)
        except StopIteration:
            return self._pass_ended(seconds, rounds)
        return joined(rounds)

    def _settle(self) -> None:
        """Take what piled up while others were measured; a fresh loader has one round under way."""
        ready = self._round
        if self._left_at and self.settings.num_workers:
            idle = self._clock() - self._left_at
            ready = min(self.settings.ahead, int(idle / self._per_batch) + 1 if self._per_batch else self._round)
        for _ in range(ready if self.settings.num_workers else 1 - bool(self._left_at)):
            self._next()

    def _pass_ended(self, seconds: float, rounds: list[Chunk]) -> list[Chunk]:
        """A short pass is measured as a whole from here on; after a long one the next begins."""
        self.length, self._iterator = self._given, None
        spent = sum(chunk.seconds for chunk in rounds)
        per_batch = spent / (len(rounds) * self._round) if rounds else self._per_batch
        if self.length <= 2 * self.settings.ahead + self._round or self.length * per_batch < 2 * seconds:
            self.whole = True
            return self._passes(seconds)
        self._begin()
        self._next()
        self._left_at = 0.0
        return joined(rounds) or self._steady(seconds)

    def _passes(self, seconds: float) -> list[Chunk]:
        """Whole passes, from asking for an iterator to its end: what an epoch costs."""
        chunks: list[Chunk] = []
        if self._iterator is not None:  # the rest of one that was begun
            self._exhaust()
        begin = self._clock()
        while not chunks or self._clock() - begin < seconds:
            busy, mark = self._spent(), self._clock()
            self._begin()
            samples = self._exhaust()
            chunks.append(Chunk(samples, self._clock() - mark))
            self._count(busy, chunks[-1:])
        return joined(chunks)

    def _exhaust(self) -> float:
        samples = 0.0
        try:
            while True:
                samples += self._next()
        except StopIteration:
            self.length = self._given
            self._iterator = None
        if not samples:
            raise ValueError("the loader gives no batches")
        return samples

    def _begin(self) -> None:
        self._given, self._skip = self._skip, 0
        # Workers inherit the mask: Ctrl-C at the terminal is for us, who end them in order.
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        before = set(multiprocessing.active_children())
        try:
            with _Quiet():
                self._iterator = iter(self.loader)
        finally:
            new = [child for child in multiprocessing.active_children() if child not in before]
            self._workers = [worker for worker in self._workers if worker.is_alive()] + new
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    def _next(self) -> float:
        if self._patience.stopped:
            raise Interrupted
        self._patience.waiting = True
        try:
            batch = next(self._iterator)
        finally:
            self._patience.waiting = False
        self._given += 1
        if self._take is not None:
            self._take(batch)
        samples = self._size or samples_in(batch)
        if not self.batch_bytes:
            self.batch, self.batch_bytes = samples, max(1, tensors.total_bytes(batch, subclasses=True))
        return samples

    # --- what it costs -----------------------------------------------------------------------------------

    def _spent(self) -> tuple[float, float]:
        """Processor seconds used so far, here and in the workers, also those that have ended; and waited for."""
        ended = os.times()
        schedules = [_schedule(f"{worker.pid}") for worker in self._workers]
        used = time.process_time() + ended.children_user + ended.children_system + sum(used for used, _ in schedules)
        return used, _schedule("thread-self")[1] + sum(waited for _, waited in schedules)

    def _count(self, before: tuple[float, float], chunks: list[Chunk]) -> None:
        samples, seconds = sum(chunk.samples for chunk in chunks), sum(chunk.seconds for chunk in chunks)
        used, waited = (max(0.0, now - then) for now, then in zip(self._spent(), before, strict=True))
        self.cpu += used
        self.wanted += used + waited
        self.cpu_samples += samples
        self._per_batch = seconds / max(1, len(chunks) * self._round)

    # --- the end -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the workers: asked first, then killed. Harmless if called twice."""
        iterator = self._iterator
        if iterator is None:  # persistent workers belong to the loader
            iterator = getattr(self.loader, "_iterator", None)
        self._iterator = self.loader = None
        workers, self._workers = self._workers, []
        killer = threading.Timer(0.1 if self._failed else FAREWELL_SECONDS, _kill, (workers,))
        killer.daemon = True
        killer.start()
        with _Unalarmed():
            try:
                if hasattr(iterator, "_shutdown_workers"):
                    iterator._shutdown_workers()  # waits for them
            except Exception:
                pass
            for worker in workers:
                worker.join(FAREWELL_SECONDS + 2)
            killer.cancel()


def joined(rounds: list[Chunk]) -> list[Chunk]:
    """Neighbouring rounds put together, so that few chunks remain and each has about the same weight."""
    if len(rounds) <= CHUNKS:
        return rounds
    edges = [round(len(rounds) * number / CHUNKS) for number in range(CHUNKS + 1)]
    parts = [rounds[begin:end] for begin, end in pairwise(edges)]
    return [Chunk(sum(c.samples for c in part), sum(c.seconds for c in part)) for part in parts]


def _kill(workers: list[Any]) -> None:
    for worker in workers:
        try:
            if worker.is_alive():
                os.kill(worker.pid, signal.SIGKILL)
        except (OSError, ValueError, AssertionError):
            continue


class _Unalarmed:
    """A worker that is killed by us is no reason for torch to raise; its handler is back afterwards."""

    def __enter__(self) -> None:
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGCHLD)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGCHLD, self._before)


class _Quiet(warnings.catch_warnings):
    """No warning about more workers than cores: that is what is being found out."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore")


def _private_bytes(worker: Any) -> int:
    try:
        with open(f"/proc/{worker.pid}/smaps_rollup", "rb") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Private_"))
    except (OSError, ValueError, IndexError):
        return 0


def _schedule(process: str) -> tuple[float, float]:
    """Seconds a process was on a core, and ready for one that others had."""
    try:
        with open(f"/proc/{process}/schedstat", "rb") as file:
            used, waited = file.read().split()[:2]
        return int(used) / 1e9, int(waited) / 1e9
    except (OSError, ValueError):
        return 0.0, 0.0
