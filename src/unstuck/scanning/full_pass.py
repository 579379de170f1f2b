"""A whole dataset, gone through once by workers of our own: what raises or hangs is listed, and it goes on."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import tempfile
from collections import deque
from multiprocessing.connection import wait
from time import monotonic, monotonic_ns, sleep

from ..recorder import user_code
from ..recorder.records.data import HungSample, KillingSample
from ..takeover.interrupts import Patience
from . import sample_worker
from .pass_outcome import SecondFetch
from .sample_worker import AT, COUNT, SINCE, Reader, Seen, TooSlow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..recorder.records import Site
    from .plan import Plan

    Progress = Callable[[int, int | None], object]
    Task = tuple[Sequence[int], bool]  # positions, and whether they must be read one by one

MOST_AT_ONCE = 16384  # samples that a worker is given at a time,
LEAST_SECONDS = 0.1  # and what they take at least: each answer costs some milliseconds
TICK_SECONDS = 0.1
START_SECONDS = 120.0  # that a worker may take to begin (a spawned one imports the script again)
MOST_BAD = 20  # samples that hang or kill their worker, after which the scan gives up
LOOKS = 8  # at a worker that hangs: does it compute or wait?
NOT_FORKED = "CUDA in forked subprocess"  # torch says so where only the script's own process can read a sample


class FullPass:
    """One pass. `seen` has all that was handed over."""

    def __init__(self, plan: Plan, seconds: float, patience: Patience | None = None, folder: str | None = None) -> None:
        """`seconds` that a sample may take; `folder` for what workers that hang write."""
        self.plan, self.seconds, self._patience = plan, seconds, patience or Patience()
        self.count = None if plan.keys is None else len(plan.keys)
        self.seen = Seen()
        self.again = SecondFetch(plan, self.seen)
        self.hung: list[HungSample] = []
        self.died: list[KillingSample] = []
        self.gave_up = self._complete = False
        self.took = 0.0
        self._todo: deque[Task] = deque()
        """What nobody reads yet."""
        self._put_back(range(self.count or 0), False)
        self._given_folder = folder
        self._started = 0
        self._workers: list[_Worker] = []

    @property
    def interrupted(self) -> bool:
        return self._patience.stopped and not self._complete

    def done(self) -> int:
        known = sum(bad.sample is not None for bad in self.died)
        return self.seen.samples + self.seen.failed + len(self.hung) + known

    def run(self, progress: Progress) -> None:
        began = monotonic()
        self._folder = self._given_folder or tempfile.mkdtemp(prefix=f"unstuck-{os.getpid()}-")
        try:
            if not self.plan.here:
                self._in_workers(progress)
            if self.plan.here and not self.interrupted:
                self._in_this_process(progress)
            self._complete = not self.interrupted
        finally:
            for worker in self._workers:
                worker.kill()
            if not self._given_folder:
                shutil.rmtree(self._folder, ignore_errors=True)
        self.took = monotonic() - began

    # --- in workers ------------------------------------------------------------------------------------------------

    def _in_workers(self, progress: Progress) -> None:
        self._workers = [self._start(number) for number in range(self.plan.workers)]
        while self._workers and not self.interrupted:
            self._hear()
            self._look_for_hanging()
            waiting = all(worker.ready and not worker.tasks for worker in self._workers)
            if waiting and not self._todo and self.plan.keys is not None and not self.again.began:
                self._finish()
            progress(self.done(), self.count)
            if self._needs_this_process():
                self._begin_anew_here()
                return

    def _start(self, number: int) -> _Worker:
        self._started += 1  # each has a seed of its own: two with one seed would draw the same
        return _Worker(self.plan, number, self._started, self._folder)

    def _hear(self) -> None:
        """Take what has come, and give out work."""
        for pipe in wait([worker.pipe for worker in self._workers], TICK_SECONDS):
            worker = next(worker for worker in self._workers if worker.pipe is pipe)
            try:
                kind, *said = worker.pipe.recv()
            except (EOFError, OSError):
                self._lost(worker)
                continue
            worker.ready = True
            if kind == "seen":
                self.seen.merge(pickle.loads(said[0]))
                positions, singly = worker.tasks.popleft() if worker.tasks else ((), False)
                self._put_back(positions[said[1] :], singly)
            elif kind == "again":
                self.again.came(said[0])
            if kind == "end" or self.again.began:
                self._workers.remove(worker)
                worker.kill()
        for worker in self._workers:
            while worker.ready and len(worker.tasks) < 2 and self._todo and not self.again.began:
                worker.give(self._next_task())  # one more than it works on, so that it never waits for us

    def _next_task(self) -> Task:
        """Towards the end in small pieces, so that all workers end together."""
        positions, singly = self._todo.popleft()
        left = len(positions) + sum(len(other) for other, _ in self._todo)
        median = self.seen.median()
        size = max(1, left // (3 * self.plan.workers), int(LEAST_SECONDS / median) if median else 0)
        size = min(size, MOST_AT_ONCE)
        self._put_back(positions[size:], singly)
        return positions[:size], singly

    def _put_back(self, positions: Sequence[int], singly: bool) -> None:
        if positions:
            self._todo.appendleft((positions, singly))

    def _finish(self) -> None:
        """All was read. Some samples are fetched once more before they are named."""
        wanted = self.again.wanted() if not self.gave_up else []
        busy = self._workers[: len(wanted)]
        for number, worker in enumerate(busy):
            worker.pipe.send(("again", wanted[number :: len(busy)]))
        for worker in self._workers[len(busy) :]:
            worker.kill()
        self._workers = busy

    # --- what goes wrong -------------------------------------------------------------------------------------------

    def _look_for_hanging(self) -> None:
        for worker in list(self._workers):
            position, since = worker.in_work()
            if since and monotonic_ns() - since > self.seconds * 1e9:
                self._hangs(worker, position, since)
            elif not worker.ready and not since and monotonic() - worker.began > START_SECONDS:
                self._lost(worker)

    def _hangs(self, worker: _Worker, position: int, since: int) -> None:
        """Note where it hangs, end it, and let another one go on behind that sample."""
        if worker.words[COUNT] > 1:
            self._replace(worker, None)
            return
        spins, site = worker.spins(), worker.site()
        if worker.in_work() != (position, since):
            return  # it moved on meanwhile
        if not self.again.began:
            seconds = (monotonic_ns() - since) / 1e9
            self.hung.append(HungSample(sample=position, seconds=seconds, spins=spins, site=site))
        self._replace(worker, position)

    def _lost(self, worker: _Worker) -> None:
        """The worker died."""
        position, since = worker.in_work()
        worker.process.join(1)
        if since and worker.words[COUNT] > 1:
            self._replace(worker, None)
            return
        bad = position if since else None
        if not self.again.began:
            self.died.append(KillingSample(sample=bad, exitcode=worker.process.exitcode))
        self._replace(worker, bad, again=worker.ready)  # one that never began: the next would not either

    def _replace(self, worker: _Worker, bad: int | None, again: bool = True) -> None:
        """`bad`: the sample that is not to be read again; None: it is one of several, which are then read singly."""
        worker.kill()
        self._workers.remove(worker)
        for number, (positions, singly) in enumerate(worker.tasks):
            left = [position for position in positions if position != bad]
            self._put_back(left, singly or (bad is None and not number))
        self.gave_up = self.gave_up or len(self.hung) + len(self.died) > MOST_BAD
        if self.gave_up:
            self._todo.clear()
        elif again and self.plan.keys is not None and not self.again.began and self._todo:
            self._workers.append(self._start(worker.number))

    # --- in the script's own process -------------------------------------------------------------------------------

    def _needs_this_process(self) -> bool:
        messages = (bad.message for errors in self.seen.errors.values() for bad in errors.first[:1])
        return any(NOT_FORKED in message for message in messages)

    def _begin_anew_here(self) -> None:
        self.seen = Seen()
        self.again = SecondFetch(self.plan, self.seen)
        self.hung, self.died = [], []
        self._todo.clear()
        self._put_back(range(self.count or 0), False)
        self.plan.read_alone("its samples are made on a GPU, which a forked process cannot use")
        self.plan.here = True

    def _in_this_process(self, progress: Progress) -> None:
        """A sample that hangs is interrupted by the signal of a timer."""
        reader = Reader(self.plan, [0, 0, 0])
        words = reader.words

        def tick(*_: object) -> None:
            if words[SINCE] and (self.interrupted or monotonic_ns() - words[SINCE] > self.seconds * 1e9):
                raise TooSlow
            progress(self.done() + reader.seen.samples, self.count)

        with _Timer(tick):
            if self.plan.keys is None:
                self._within_limit(reader, (), False)
            while self._todo and not self.interrupted:
                self._within_limit(reader, *self._todo.popleft())
            if self.plan.keys is not None and not self.interrupted:
                self.again.came([reader.again(position) for position in self.again.wanted()])

    def _within_limit(self, reader: Reader, positions: Sequence[int], singly: bool) -> None:
        """Read some of them, and put the others back; without positions, the whole stream."""
        done = 0
        try:
            if self.plan.keys is None:
                deque(reader.stream(), maxlen=0)
            else:
                done = reader.read(positions, singly)
        except TooSlow as stopped:
            bad, several = reader.words[AT], reader.words[COUNT] > 1
            if positions:
                done = positions.index(bad) + (not several)
            singly = singly or several
            if not several and not self.interrupted:
                site = sample_worker.line_of(stopped)
                self.hung.append(HungSample(sample=bad, seconds=self.seconds, site=site))
        self.seen.merge(reader.take())
        self._put_back(positions[done:], singly)


class _Timer:
    """Calls a function in the main thread ten times a second, also while that waits in the kernel."""

    def __init__(self, tick: Callable[..., object]) -> None:
        self._tick = tick

    def __enter__(self) -> None:
        self._before: Any = None
        try:
            self._before = signal.signal(signal.SIGALRM, self._tick)
            signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)
        except ValueError:  # not in the main thread: then no sample has a limit
            pass

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)


class _Worker:
    """One worker, and the tasks of which it has not told the result."""

    def __init__(self, plan: Plan, number: int, seed: int, folder: str) -> None:
        context = multiprocessing.get_context(plan.method)
        self.number = number
        self.words: Any = context.RawArray("q", 3)
        self._stack = os.path.join(folder, f"scan-stack-{seed}")
        self.pipe, theirs = context.Pipe()
        arguments = (plan, theirs, self.words, number, seed, self._stack, os.getpid())
        self.process: Any = context.Process(  # type: ignore[attr-defined]
            target=sample_worker.work, args=arguments, daemon=True
        )
        self.process.start()
        theirs.close()
        self.tasks: deque[Task] = deque()
        self.ready = False
        self.began = monotonic()

    def give(self, task: Task) -> None:
        self.tasks.append(task)
        self.pipe.send(task)

    def in_work(self) -> tuple[int, int]:
        """The position, and since when (0: none)."""
        return int(self.words[AT]), int(self.words[SINCE])

    def kill(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join(5)
        self.pipe.close()

    def spins(self) -> bool:
        """It wants the processor, each time one looks: on a crowded machine it need not have got it."""
        wants = 0
        for _ in range(LOOKS):
            try:
                with open(f"/proc/{self.process.pid}/stat", "rb") as file:
                    wants += file.read().rpartition(b")")[2].split()[0] == b"R"
            except OSError:
                return False
            sleep(0.03)
        return wants > LOOKS // 2

    def site(self) -> Site | None:
        """The innermost line of the user's, as the worker's own faulthandler writes it."""
        try:
            os.kill(self.process.pid, sample_worker.STACK_SIGNAL)
            sleep(0.4)
            with open(self._stack) as file:
                frames = [_frame(line) for line in file]
        except OSError:
            return None
        return next((frame for frame in frames if frame is not None and user_code.is_user_file(frame[0])), None)


def _frame(line: str) -> Site | None:
    """File "x.py", line 3 in f"""
    head, _, rest = line.strip().partition('", line ')
    number, _, function = rest.partition(" in ")
    return (head[6:], int(number), function) if head.startswith('File "') and number.isdigit() else None
