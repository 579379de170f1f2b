"""How the run died: in which process, of which exception or signal, and what became of its workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from unstuck.model import Case, Exit, Flight, Frame, Where
from unstuck.recorder.records.deaths import (
    BatchFailed,
    ChildEnded,
    Died,
    Failed,
    FileSystem,
    LeftByExit,
    Raised,
    SampleFailed,
    SampleInWork,
    ThreadDied,
    TracedLine,
)
from unstuck.rules.rank_positions import world_of
from unstuck.rules.words import place, process_name, seconds, worker_number
from unstuck.text import SIGINT, SIGTERM, signal_name

LAUNCHERS = (
    "torch/distributed/run.py",
    "torch/distributed/launcher/api.py",
    "torch/multiprocessing/spawn.py",
    "accelerate/commands/launch.py",
)
SEMAPHORES = ("multiprocessing/synchronize.py", "multiprocessing/shared_memory.py", "multiprocessing/heap.py")
LOST = ("EOFError", "BrokenPipeError", "ConnectionResetError", "BrokenProcessPool", "Empty")
"""What a process gets of another one that is gone, or does not answer any more."""
REMOTE = ("RemoteTraceback", "_RemoteTraceback")
"""With these a pool hands over an exception: the traceback as text."""
MAX_LATER = 60.0  # seconds after the end of the other one, at most; for any other exception,
MAX_LATER_OTHERWISE = 5.0  # which may be how the script says that it noticed, if a signal ended the other one
MAX_MESSAGE = 240  # characters of an exception in a line of evidence

Item = TypeVar("Item")


@dataclass(frozen=True)
class WorkerEnd:
    """A DataLoader worker that is gone, and how."""

    pid: int
    code: int | None
    name: str  # worker 1 (pid 77)
    flight: Flight | None = None
    error: Died | SampleFailed | None = None  # the exception that ended it, or that it handed over to main
    exited: LeftByExit | None = None  # its own call of os._exit

    @property
    def signal(self) -> str:
        """SIGKILL, SIGSEGV …; empty if it ended by itself."""
        if self.flight is not None and self.flight.crash is not None:
            return self.flight.crash.signal
        return signal_name(-self.code) if self.code is not None and self.code < 0 else ""


@dataclass(frozen=True)
class Death:
    case: Case
    pid: int  # the process the run ended with: the training, not a launcher above it
    exit: Exit
    died: Died | None = None  # the exception that ended it
    batch: BatchFailed | None = None  # the batch that could not be fetched, if that ended it
    certain: bool = True  # False: the script caught that error, and then exited by itself
    missed: Died | None = None  # the exception of the training, for which that process made the data

    @cached_property
    def flight(self) -> Flight | None:
        return self.case.flight_of(self.pid)

    @cached_property
    def fallen(self) -> tuple[WorkerEnd, ...]:
        """Workers that were gone when the batch failed and that main had not ended."""
        if self.batch is None:
            return ()
        ends = [self._worker(exit_.pid, exit_.exitcode) for exit_ in self.batch.workers]
        gone = tuple(end for end in ends if end.code or end.exited is not None or end.signal)
        if gone or self.batch.worker is not None:
            return gone
        # Their exit codes may come a moment later; then main terminates the others.
        pids = {exit_.pid for exit_ in self.batch.workers}
        late = (ended for ended in self.case.children_ended if ended.child in pids)
        return tuple(self._worker(ended.child, ended.code) for ended in late if ended.code != -SIGTERM)

    @cached_property
    def sample(self) -> SampleFailed | None:
        """What was raised while a batch was being made, in a worker or in main, if that ended the run."""
        failed = self.case.samples_failed
        if self.batch is not None and self.batch.worker is not None:
            pids = [exit_.pid for exit_ in self.batch.workers if exit_.worker == self.batch.worker]
            return _last(each for each in failed if each.pid in pids and each.at <= self.batch.at)
        for worker in self.fallen:
            if isinstance(worker.error, SampleFailed) and not worker.signal:
                return worker.error
        return _last(each for each in failed if each.pid == self.pid and _is_part_of(each.raised, self.died))

    @property
    def errors(self) -> tuple[tuple[Failed, Raised], ...]:
        """Everything that led to the end: the sample's exception, the batch's and main's, each with its causes."""
        tops = [failed for failed in (self.sample, self.batch, self.died) if failed is not None]
        return tuple((failed, raised) for failed in tops for raised in with_causes(failed.raised))

    def _worker(self, pid: int, code: int | None) -> WorkerEnd:
        exited = next((left for left in self.case.left_by_exit if left.pid == pid), None)
        name = process_name(self.case, pid)
        return WorkerEnd(pid, code, name, self.case.flight_of(pid), _last_error(self.case, pid), exited)

    @cached_property
    def trainer(self) -> Flight | None:
        """Of the process that trained."""
        other = self.case.flight_of(self.missed.pid) if self.missed is not None else None
        return self.flight if other is None or not other.step else other

    @property
    def step(self) -> int | None:
        return (self.trainer.step or None) if self.trainer is not None else None

    @property
    def aftermath(self) -> str:
        """What the training then died of, if that was another process."""
        if self.missed is None:
            return ""
        frame = user_line(*with_causes(self.missed.raised))
        at = f" at {place(frame)}" if frame is not None else ""
        return f"{process_name(self.case, self.missed.pid)} then died of `{exception_text(self.missed.raised)}`{at}"

    def progress(self) -> str:
        """The last healthy step, and what the training then died of, as evidence."""
        return "; ".join(filter(None, (self._last_step(), self.aftermath)))

    def _last_step(self) -> str:
        flight = self.trainer
        if flight is None or not (flight.step or flight.loaders):
            return "no training step was made"
        if not flight.step:
            return "not one training step was finished" + (f"; {flight.batch} batches had come" if flight.batch else "")
        epoch = f" of epoch {flight.epoch}" if flight.epoch else ""
        ran = f", {seconds(flight.steps[-1].ended - flight.began)} after the start" if flight.steps else ""
        return f"the last healthy step was step {flight.step:,}{epoch}{ran}"

    def where(
        self, frame: Frame | None, failed: Failed | ThreadDied | None = None, worker: WorkerEnd | None = None
    ) -> Where:
        """The line, with the process, sample and step: of the worker if one is given, else of what failed."""
        work, pid = in_work(failed), failed.pid if failed is not None else self.pid
        number, sample = work.worker, work.sample
        if worker is not None:
            pid, number = worker.pid, worker_number(self.case, worker.pid)
            if sample is None and not work.key and worker.flight is not None:
                sample = worker.flight.sample
        return replace(
            at_line(frame),
            pid=pid,
            worker=number,
            rank=self.flight.rank if self.flight is not None else None,
            sample=sample if sample is not None else work.key or None,
            step=self.step,
        )


def at_line(frame: Frame | None) -> Where:
    return Where(frame.file, frame.line, frame.function) if frame is not None else Where()


def in_work(failed: Failed | ThreadDied | LeftByExit | None) -> SampleInWork:
    """The sample being fetched at that moment, as far as it is known."""
    if isinstance(failed, (SampleFailed, Died, LeftByExit)):
        return failed.in_work
    return SampleInWork(worker=failed.worker if isinstance(failed, BatchFailed) else None)


def _last_error(case: Case, pid: int) -> Died | SampleFailed | None:
    """The exception that ended a worker; as it was recorded at the sample if it came from one."""
    died = _last(each for each in case.deaths if each.pid == pid)
    kind = "SystemExit" if died is None else died.raised.type
    return _last(each for each in case.samples_failed if each.pid == pid and each.raised.type == kind) or died


def _is_part_of(raised: Raised, died: Died | None) -> bool:
    """Two records tell of one exception if its type and message are the same."""
    chain = with_causes(died.raised) if died is not None else ()
    return any((each.type, each.message) == (raised.type, raised.message) for each in chain)


def _last(records: Iterable[Item]) -> Item | None:
    return next(reversed(list(records)), None)


# --- who died ------------------------------------------------------------------------------------------------


def death(case: Case) -> Death | None:
    """None if neither the run nor a rank of it died, or if it was ended by Ctrl-C."""
    if case.outcome != "died":
        world = world_of(case) if case.outcome == "finished" else None
        if world is None or not world.broken:
            return None
    root = case.root
    if root is None:
        first = min(case.flights, key=lambda flight: flight.began, default=None)
        root = first.pid if first is not None else 0
    exit_ = next((each for each in case.exits if each.pid == root), Exit(root, inferred=True))
    if exit_.signal == SIGINT or exit_.code == 128 + SIGINT:
        return None
    own = _last(died for died in case.deaths if died.pid == root)
    launches = own is None or any(goes_through(raised, *LAUNCHERS) for raised in with_causes(own.raised))
    if launches and exit_.signal is None:
        below = _first_below(case, root)
        killed = _killed_rank(case)
        if killed is not None and (below is None or _died_waiting(case, below)):
            return _death_of(case, killed.child, Exit(killed.child, signal=-killed.code), None)
        crashed = next((f.pid for f in case.flights if f.crash is not None and f.pid != root and _trains(f)), None)
        if below is not None:
            return _death_of(case, below.pid, exit_, below)
        if crashed is not None and own is None:
            return _death_of(case, crashed, exit_, None)
    other = (_of_task(case, own) or _of_lost_process(case, own)) if own is not None else None
    return other or _death_of(case, root, exit_, own)


def _of_task(case: Case, own: Died) -> Death | None:
    """What a task of a pool raised, in its own process, if the training died of getting it."""
    if not any(each.type in REMOTE for each in with_causes(own.raised)):
        return None
    task = _last(task for task in case.tasks_failed if task.at <= own.at and _is_part_of(task.raised, own))
    return Death(case, task.pid, Exit(task.pid, code=1, inferred=True), task, missed=own) if task is not None else None


def _of_lost_process(case: Case, own: Died) -> Death | None:
    """The death of another process that the script started, if the training died only because that one was gone."""
    workers = _workers(case)
    errors = {died.pid: died for died in case.deaths if died.pid != own.pid and died.at <= own.at}
    signals = {e.child: e for e in case.children_ended if e.pid == own.pid and e.code < 0 and e.code != -SIGTERM}
    crashed = {flight.pid for flight in case.flights if flight.crash is not None}
    lost = any(each.type in LOST for each in with_causes(own.raised))
    gone = [
        (ended.at, pid)
        for pid, ended in {**errors, **signals}.items()
        if pid not in workers
        and own.at - ended.at <= (MAX_LATER if lost else MAX_LATER_OTHERWISE)
        and (lost or pid in crashed)
    ]
    gone += [(own.at, pid) for pid in crashed - workers - {own.pid} if lost and pid not in signals]
    if not gone:
        return None
    pid = min(gone)[1]
    signal = -signals[pid].code if pid in signals else None
    died = None if signal is not None or pid in crashed else errors.get(pid)
    return Death(case, pid, Exit(pid, code=None if signal else 1, signal=signal, inferred=True), died, missed=own)


def _death_of(case: Case, pid: int, exit_: Exit, died: Died | None) -> Death:
    failed = [each for each in case.batches_failed if each.pid == pid]
    batch = _last(each for each in failed if _is_part_of(each.raised, died))
    if batch is None and died is None and exit_.code and failed:
        flight = case.flight_of(pid)
        exited = any(left.pid == pid for left in case.left_by_exit)
        if flight is not None and failed[-1].step == flight.step and not exited:
            return Death(case, pid, exit_, None, failed[-1], certain=False)
    return Death(case, pid, exit_, died, batch)


def _workers(case: Case) -> set[int]:
    """Of DataLoaders."""
    return {pid for started in case.workers_started for pid in started.pids}


def _first_below(case: Case, root: int) -> Died | None:
    """The first process below a launcher, or below a script that only waits for its children, to die of an error."""
    workers = _workers(case)
    able = [e for e in case.deaths if e.pid != root and e.pid not in workers and _trains(case.flight_of(e.pid))]
    return min(able, key=lambda died: died.at, default=None)


def _killed_rank(case: Case) -> ChildEnded | None:
    """The first rank that a signal ended. SIGTERM is how a launcher ends the others."""
    ranks = {flight.pid for flight in case.flights if flight.rank is not None and flight.role == "rank"}
    killed = [e for e in case.children_ended if e.child in ranks and e.code < 0 and e.code != -SIGTERM]
    return min(killed, key=lambda ended: ended.at, default=None)


def _died_waiting(case: Case, died: Died) -> bool:
    """Of a collective, because another rank was gone."""
    world = world_of(case)
    positions = world.positions.values() if world is not None else ()
    return any(position.flight.pid == died.pid and position.call is not None for position in positions)


def _trains(flight: Flight | None) -> bool:
    return flight is not None and flight.role != "worker"


# --- exceptions, as the dying processes described them -------------------------------------------------------


def frames_of(lines: Iterable[TracedLine]) -> tuple[Frame, ...]:
    """Innermost first."""
    return tuple(Frame(file, line, function, user=user) for file, line, function, user in lines)


def innermost(raised: Raised) -> Frame | None:
    return next(iter(frames_of(raised.frames[:1])), None)


def user_line(*raised: Raised) -> Frame | None:
    """The innermost line of the user's own code, in the first of these exceptions that has one."""
    return next((frame for each in raised for frame in frames_of(each.frames) if frame.user), None)


def crash_frames(flight: Flight | None) -> tuple[Frame, ...]:
    """The thread that a fatal signal hit, innermost frame first."""
    crash = flight.crash if flight is not None else None
    return crash.thread.frames if crash is not None and crash.thread is not None else ()


def with_causes(raised: Raised) -> tuple[Raised, ...]:
    return (raised, *raised.chain)


def first_cause(raised: Raised) -> Raised:
    """Down the chain of `raise … from …`; an exception that merely came before is no cause."""
    for before in raised.chain:
        if before.how != "cause":
            break
        raised = before
    return raised


def goes_through(raised: Raised, *files: str, function: str = "") -> bool:
    """One of its frames is in a file that ends so, and in that function."""
    return any(file.endswith(files) and function in ("", name.rpartition(".")[2]) for file, _, name, _ in raised.frames)


def exception_text(raised: Raised) -> str:
    """`ValueError: cannot reshape array of size 12`"""
    lines = [line.strip() for line in raised.message.splitlines() if line.strip()]
    first = lines[0] if lines else ""
    if first and lines[1:] and first[-1].isalnum():  # a sentence that goes on
        first = f"{first} {lines[1]}"
    text = f"{raised.type}: {first}" if first else raised.type
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


# --- no room -------------------------------------------------------------------------------------------------


def file_system(failed: Failed) -> FileSystem | None:
    """Of those measured at that moment, the full one first."""
    return min(failed.measured.file_systems, key=lambda measured: not measured.full, default=None)


def wants_shared_memory(failed: Failed) -> bool:
    """What it had no room for belongs into /dev/shm."""
    measured = file_system(failed)
    if measured is not None and measured.mount == "/dev/shm":
        return True
    named = any(file.startswith("/dev/shm/") for file in failed.raised.files)
    return named or any(goes_through(raised, *SEMAPHORES) for raised in with_causes(failed.raised))
