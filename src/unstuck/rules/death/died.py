"""How the run died: in which process, of what, and what its workers left behind. Shared by the rules of the family."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from functools import cached_property

from unstuck.model import Case, Exit, Flight, Frame, Where
from unstuck.recorder.records.deaths import (
    BatchFailed,
    Died,
    Failed,
    LeftByExit,
    Raised,
    SampleFailed,
    SampleInWork,
    ThreadDied,
)
from unstuck.rules.death.errors import passes, whole
from unstuck.rules.words import seconds

LAUNCHERS = (
    "torch/distributed/run.py",
    "torch/distributed/launcher/api.py",
    "torch/multiprocessing/spawn.py",
    "accelerate/commands/launch.py",
)
FATAL = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL")


@dataclass(frozen=True)
class WorkerEnd:
    """A DataLoader worker that is gone, and how."""

    number: int | None
    pid: int
    code: int | None
    flight: Flight | None = None
    error: Died | SampleFailed | None = None
    """The exception it ended of, or that it handed over to main."""
    left: LeftByExit | None = None
    """It ended itself by os._exit."""

    @property
    def signal(self) -> str:
        """SIGKILL, SIGSEGV …; empty if it ended by itself."""
        if self.flight is not None and self.flight.crash is not None:
            return self.flight.crash.signal
        return signal_name(-self.code) if self.code is not None and self.code < 0 else ""

    @property
    def who(self) -> str:
        return f"worker {self.number} (pid {self.pid})" if self.number is not None else f"a worker (pid {self.pid})"


@dataclass(frozen=True)
class Death:
    case: Case
    pid: int
    """The process that the run ended with: the training, not a launcher above it."""
    exit: Exit
    died: Died | None = None
    """The exception it ended of."""
    batch: BatchFailed | None = None
    """The batch that could not be had, if it ended of that."""
    certain: bool = True
    """The end follows from that error; False: the script caught it, and then left by itself."""

    @cached_property
    def flight(self) -> Flight | None:
        return self.case.flight_of(self.pid)

    @cached_property
    def fallen(self) -> tuple[WorkerEnd, ...]:
        """Workers that were gone when the batch failed, not ended by main."""
        if self.batch is None:
            return ()
        ends = [self._worker(exit_.worker, exit_.pid, exit_.exitcode) for exit_ in self.batch.workers]
        gone = tuple(end for end in ends if end.code or end.left is not None or end.signal)
        if gone or self.batch.worker is not None:
            return gone
        # Their exit codes may come a moment later; then main ends the rest.
        numbers = {end.pid: end.number for end in ends}
        late = [each for each in self.case.children_ended if each.child in numbers]
        found = [self._worker(numbers[each.child], each.child, each.code) for each in late]
        return tuple(end for end in found if end.code != -signal.SIGTERM)

    @cached_property
    def sample(self) -> SampleFailed | None:
        """What was raised while a batch was made, in a worker or in main, that the run ended of."""
        if self.batch is not None and self.batch.worker is not None:
            pids = [exit_.pid for exit_ in self.batch.workers if exit_.worker == self.batch.worker]
            own = [f for f in self.case.samples_failed if f.pid in pids and f.at <= self.batch.at]
            return own[-1] if own else None
        for worker in self.fallen:
            if isinstance(worker.error, SampleFailed) and not worker.signal:
                return worker.error
        same = _texts(self.died)
        here = [f for f in self.case.samples_failed if f.pid == self.pid and _text(f.raised) in same]
        return here[-1] if here else None

    @property
    def errors(self) -> tuple[tuple[Failed, Raised], ...]:
        """All that the end follows from: the sample's own, the batch's and main's, and what those came from."""
        tops = [top for top in (self.sample, self.batch, self.died) if top is not None]
        return tuple((top, raised) for top in tops for raised in whole(top.raised))

    def _worker(self, number: int | None, pid: int, code: int | None) -> WorkerEnd:
        left = next((each for each in self.case.left_by_exit if each.pid == pid), None)
        return WorkerEnd(number, pid, code, self.case.flight_of(pid), _last_error(self.case, pid), left)

    @property
    def step(self) -> int | None:
        return self.flight.step if self.flight is not None and self.flight.step else None

    def progress(self) -> str:
        """The last healthy step, in a line of evidence."""
        flight = self.flight
        if flight is None or not (flight.step or flight.loaders):
            return "no training step had been made"
        if not flight.step:
            return "not one training step was finished" + (f"; {flight.batch} batches had come" if flight.batch else "")
        epoch = f" of epoch {flight.epoch}" if flight.epoch else ""
        ran = f", {seconds(flight.steps[-1].ended - flight.began)} after the start" if flight.steps else ""
        return f"the last healthy step was step {flight.step:,}{epoch}{ran}"

    def where(
        self, frame: Frame | None, failed: Failed | ThreadDied | None = None, worker: WorkerEnd | None = None
    ) -> Where:
        work = in_work(failed)
        flight = worker.flight if worker is not None else self.flight
        sample: int | str | None = work.sample
        if sample is None:
            sample = work.key or (flight.sample if worker is not None and flight is not None else None)
        return Where(
            file=frame.file if frame else None,
            line=frame.line if frame else None,
            function=frame.function if frame else None,
            pid=worker.pid if worker is not None else failed.pid if failed is not None else self.pid,
            worker=worker.number if worker is not None else work.worker,
            rank=self.flight.rank if self.flight is not None else None,
            sample=sample,
            step=self.step,
        )


def in_work(failed: Failed | ThreadDied | LeftByExit | None) -> SampleInWork:
    """The sample that was in work, as far as it is known."""
    if isinstance(failed, (SampleFailed, Died, LeftByExit)):
        return failed.in_work
    return SampleInWork(worker=failed.worker if isinstance(failed, BatchFailed) else None)


def _last_error(case: Case, pid: int) -> Died | SampleFailed | None:
    """What a worker ended of; where it came out of a sample, as it was noted there."""
    last = next((each for each in reversed(case.deaths) if each.pid == pid), None)
    kind = "SystemExit" if last is None else last.raised.type
    samples = [each for each in case.samples_failed if each.pid == pid and each.raised.type == kind]
    return samples[-1] if samples else last


def _texts(died: Died | None) -> set[tuple[str, str]]:
    return {_text(raised) for raised in whole(died.raised)} if died is not None else set()


def _text(raised: Raised) -> tuple[str, str]:
    """By this two records are known to speak of one exception."""
    return raised.type, raised.message


def death(case: Case) -> Death | None:
    """None if the run did not die, or was ended by Ctrl-C."""
    if case.outcome != "died":
        return None
    root = _root(case)
    exit_ = next((e for e in case.exits if e.pid == root), Exit(root, inferred=True))
    if exit_.signal == signal.SIGINT or exit_.code == 128 + signal.SIGINT:
        return None
    own = next((each for each in reversed(case.deaths) if each.pid == root), None)
    if own is not None and not any(passes(each, *LAUNCHERS) for each in whole(own.raised)):
        return _of(case, root, exit_, own)
    below = _below(case, root)
    if below is not None and exit_.signal is None:
        return _of(case, below.pid, exit_, below)
    crashed = next((f.pid for f in case.flights if f.crash is not None and f.pid != root and _plays(f)), None)
    if crashed is not None and own is None and exit_.signal is None:
        return _of(case, crashed, exit_, None)
    return _of(case, root, exit_, own)


def _of(case: Case, pid: int, exit_: Exit, died: Died | None) -> Death:
    failed = [each for each in case.batches_failed if each.pid == pid]
    same = _texts(died)
    linked = next((each for each in reversed(failed) if _text(each.raised) in same), None)
    if linked is None and died is None and exit_.code and failed:
        flight = case.flight_of(pid)
        left = any(each.pid == pid for each in case.left_by_exit)
        if flight is not None and failed[-1].step == flight.step and not left:
            return Death(case, pid, exit_, None, failed[-1], certain=False)
    return Death(case, pid, exit_, died, linked)


def _root(case: Case) -> int:
    if case.root is not None:
        return case.root
    first = min(case.flights, key=lambda f: f.began, default=None)
    return first.pid if first is not None else 0


def _below(case: Case, root: int) -> Died | None:
    """The first process below a launcher (or below a script that only waits for its children) that died of an error."""
    workers = {pid for started in case.workers_started for pid in started.pids}
    able = [e for e in case.deaths if e.pid != root and e.pid not in workers and _plays(case.flight_of(e.pid))]
    return min(able, key=lambda e: e.at, default=None)


def _plays(flight: Flight | None) -> bool:
    return flight is not None and flight.role != "worker"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
