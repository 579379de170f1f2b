"""How the run died: in which process, of what, and what its workers left behind. Shared by the rules of the family."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from functools import cached_property

from unstuck.model import Case, Exit, Fact, Flight, Frame, Where
from unstuck.rules.death.errors import Error, error_of
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
    error: Error | None = None
    """The exception it ended of, or that it handed over to main."""
    left: Fact | None = None
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
    error: Error | None = None
    """The exception it ended of."""
    batch: Error | None = None
    """The batch that could not be had, if it ended of that."""
    certain: bool = True
    """The end follows from that error; False: the script caught it, and then left by itself."""

    @cached_property
    def flight(self) -> Flight | None:
        return self.case.flight_of(self.pid)

    @cached_property
    def fallen(self) -> tuple[WorkerEnd, ...]:
        """Workers that were gone when the batch failed, not ended by main."""
        told = (self.batch.data.get("workers") if self.batch is not None else None) or ()
        ends = [self._worker(w["worker"], w["pid"], w["exitcode"]) for w in told]
        gone = tuple(end for end in ends if end.code or end.left is not None or end.signal)
        if gone or self.batch is None or self.batch.data.get("worker") is not None:
            return gone
        numbers = {
            end.pid: end.number for end in ends
        }  # their exit codes may come a moment later; then main ends the rest
        late = [f.data for f in self.case.facts if f.kind == "child-ended" and f.data.get("pid") in numbers]
        found = [self._worker(numbers[data["pid"]], data["pid"], data["code"]) for data in late]
        return tuple(end for end in found if end.code != -signal.SIGTERM)

    @cached_property
    def sample(self) -> Error | None:
        """What was raised while a batch was made, in a worker or in main, that the run ended of."""
        facts = [f for f in self.case.facts if f.kind == "sample-failed"]
        if self.batch is not None and self.batch.data.get("worker") is not None:
            number = self.batch.data["worker"]
            pids = [w["pid"] for w in self.batch.data.get("workers") or () if w["worker"] == number]
            own = [f for f in facts if f.pid in pids and f.at <= self.batch.at]
            return error_of(own[-1]) if own else None
        for worker in self.fallen:
            if worker.error is not None and worker.error.kind == "sample-failed" and not worker.signal:
                return worker.error
        same = {(e.type, e.message) for e in (self.error.whole if self.error else ())}
        here = [f for f in facts if f.pid == self.pid and (f.data.get("type"), f.data.get("message")) in same]
        return error_of(here[-1]) if here else None

    @property
    def errors(self) -> tuple[Error, ...]:
        """All that the end follows from: main's, what that came from, the batch's and the sample's own."""
        return tuple(e for top in (self.sample, self.batch, self.error) if top is not None for e in top.whole)

    def _worker(self, number: int | None, pid: int, code: int | None) -> WorkerEnd:
        facts = [f for f in self.case.facts if f.pid == pid]
        flight = next((f for f in self.case.flights if f.pid == pid), None)
        left = next((f for f in facts if f.kind == "left"), None)
        return WorkerEnd(number, pid, code, flight, _last_error(facts), left)

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

    def where(self, frame: Frame | None, error: Error | None = None, worker: WorkerEnd | None = None) -> Where:
        data = error.data if error is not None else {}
        flight = worker.flight if worker is not None else self.flight
        number = worker.number if worker is not None else data.get("worker")
        sample = data.get("sample")
        if sample is None:
            sample = data.get("key") or (flight.sample if worker is not None and flight is not None else None)
        return Where(
            file=frame.file if frame else None,
            line=frame.line if frame else None,
            function=frame.function if frame else None,
            pid=worker.pid if worker is not None else error.pid if error is not None else self.pid,
            worker=number,
            rank=self.flight.rank if self.flight is not None else None,
            sample=sample,
            step=self.step,
        )


def _last_error(facts: list[Fact]) -> Error | None:
    """What a worker ended of; where it came out of a sample, as it was noted there."""
    last = next((f for f in reversed(facts) if f.kind == "exception"), None)
    said = ("SystemExit",) if last is None else (last.data.get("type"),)
    samples = [f for f in facts if f.kind == "sample-failed" and f.data.get("type") in said]
    best = samples[-1] if samples else last
    return error_of(best) if best is not None else None


def death(case: Case) -> Death | None:
    """None if the run did not die, or was ended by Ctrl-C."""
    if case.outcome != "died":
        return None
    root = _root(case)
    exit_ = next((e for e in case.exits if e.pid == root), Exit(root, inferred=True))
    if exit_.signal == signal.SIGINT or exit_.code == 128 + signal.SIGINT:
        return None
    errors = [error_of(f) for f in case.facts if f.kind == "exception"]
    own = next((e for e in reversed(errors) if e.pid == root), None)
    if own is not None and not any(each.passes(*LAUNCHERS) for each in own.whole):
        return _of(case, root, exit_, own)
    below = _below(case, root, errors)
    if below is not None and exit_.signal is None:
        return _of(case, below.pid, exit_, below)
    crashed = next((f.pid for f in case.flights if f.crash is not None and f.pid != root and _plays(f)), None)
    if crashed is not None and own is None and exit_.signal is None:
        return _of(case, crashed, exit_, None)
    return _of(case, root, exit_, own)


def _of(case: Case, pid: int, exit_: Exit, error: Error | None) -> Death:
    failed = [error_of(f) for f in case.facts if f.kind == "batch-failed" and f.pid == pid]
    whole = {(e.type, e.message) for e in (error.whole if error is not None else ())}
    linked = next((b for b in reversed(failed) if (b.type, b.message) in whole), None)
    if linked is None and error is None and exit_.code and failed:
        flight = next((f for f in case.flights if f.pid == pid), None)
        if flight is not None and failed[-1].step == flight.step and not _left(case, pid):
            return Death(case, pid, exit_, None, failed[-1], certain=False)
    return Death(case, pid, exit_, error, linked)


def _left(case: Case, pid: int) -> bool:
    return any(f.kind == "left" and f.pid == pid for f in case.facts)


def _root(case: Case) -> int:
    if case.root is not None:
        return case.root
    first = min(case.flights, key=lambda f: f.began, default=None)
    return first.pid if first is not None else 0


def _below(case: Case, root: int, errors: list[Error]) -> Error | None:
    """The first process below a launcher (or below a script that only waits for its children) that died of an error."""
    flights = {f.pid: f for f in case.flights}
    workers = {w for f in case.facts if f.kind == "workers" for w in f.data.get("pids") or ()}
    able = [e for e in errors if e.pid != root and e.pid not in workers and _plays(flights.get(e.pid))]
    return min(able, key=lambda e: e.at, default=None)


def _plays(flight: Flight | None) -> bool:
    return flight is not None and flight.role != "worker"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
