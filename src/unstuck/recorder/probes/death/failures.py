"""Failures, written where they happen: a sample that raises, a batch that does not come, the end of the process.

With them goes what is measured at that moment, for a second later it may be gone. Nothing on this way may need a
descriptor, for there may be none left: what it takes is loaded when the first pass over a loader begins, or
with the first steps where there is none.
"""

from __future__ import annotations

import os
import sys
from _weakref import ref
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from ... import attempts, flight, guard, journal, loading, objects
from ... import layout as at
from ...probe import Probe
from ...records.deaths import (
    BatchFailed,
    ChildEnded,
    DeviceState,
    Died,
    FileSystem,
    LeftByExit,
    Measured,
    SampleFailed,
    SampleInWork,
    TaskFailed,
    ThreadDied,
    WorkerExit,
)
from . import resources, tracebacks

T = TypeVar("T")

MOST_FAILED = 1000  # samples, or tasks; a script may catch them and go on
MOST_PASSES = 16  # that are remembered
MOST_INDICES = 100_000  # of a batch that are gone through


class Failures(Probe):
    name = "failures"

    def forget(self) -> None:
        self._iterators: list[Callable[[], Any]] = []
        self._failed = 0
        self._noted = 0  # id of the last error of a sample

    def worker_began(self) -> None:
        self.forget()
        attempts.worker_began()

    def pass_began(self, _: object, iterator: Any) -> None:
        """Remember it, weakly: its workers hold descriptors."""
        if len(self._iterators) > MOST_PASSES:
            self._iterators = [known for known in self._iterators if known() is not None][-MOST_PASSES:]
        self._iterators.append(ref(iterator))

    def stepped_without_loader(self, _: FrameType, steps: int) -> None:
        """All that is wanted is to be loaded by now."""

    def living(self) -> list[Any]:
        """Iterators that are still there, each once, the oldest first."""
        found = (known() for known in self._iterators)
        return list({id(iterator): iterator for iterator in found if iterator is not None}.values())

    def batch_failed(self, iterator: Any, error: BaseException) -> None:
        self._no_batch(error, tracebacks.worker_of(error), [iterator])

    def workers_failed(self, error: BaseException) -> None:
        """torch's handler of SIGCHLD raises in the middle of whatever main does."""
        self._no_batch(error, None, self.living())

    def _no_batch(self, error: BaseException, worker: int | None, iterators: list[Any]) -> None:
        raised, step, exits = tracebacks.describe(error), flight.steps(), _exits(iterators)
        measured = self._measured(error)
        journal.write(BatchFailed(raised=raised, step=step, measured=measured, worker=worker, workers=exits))

    def sample_failed(self, index: object, error: BaseException) -> None:
        self._failed += 1
        self._noted = id(error)
        if self._failed <= MOST_FAILED:
            work, place = _in_work(), _position(index)  # first of all: to measure is to open files
            raised, step, measured = tracebacks.describe(error), flight.steps(), self._measured(error)
            journal.write(SampleFailed(raised=raised, step=step, measured=measured, in_work=work, position=place))

    def error_handed_over(self, error: BaseException | None) -> None:
        """A worker sends main an exception: of a sample, or of its own start, or of the dataset's iter()."""
        if error is not None and id(error) != self._noted:
            raised, step, work = tracebacks.describe(error), flight.steps(), SampleInWork(worker=_worker())
            measured = self._measured(error)
            journal.write(SampleFailed(raised=raised, step=step, measured=measured, in_work=work, starting=True))

    def process_failed(self, error: BaseException) -> None:
        of_rank = flight.words[at.W_ROLE] == at.ROLES.index("rank")  # the script above it may end well all the same
        (journal.tell if of_rank else journal.write)(Died(**self._end(error)))

    def task_failed(self, error: BaseException) -> None:
        self._failed += 1
        if self._failed <= MOST_FAILED:
            journal.write(TaskFailed(**self._end(error)))

    def _end(self, error: BaseException) -> dict[str, Any]:
        work = _in_work()
        labels, batch_norm, pickling = _part("torch's frames", tracebacks.torch_state, error) or (None, None, None)
        return {
            "raised": tracebacks.describe(error),
            "step": flight.steps(),
            "measured": self._measured(error),
            "workers": _exits(self.living()),
            "in_work": work,
            "batches": loading.batches(),
            "labels": labels,
            "batch_norm": batch_norm,
            "pickling": pickling,
            "device": _part("device at death", _device, error),
        }

    def thread_failed(self, error: BaseException | None, thread: Any) -> None:
        if error is not None:  # as if somebody called the hook by hand
            name = thread.__dict__.get("_name") if thread is not None else ""
            journal.write(ThreadDied(raised=tracebacks.describe(error), thread=name if type(name) is str else ""))

    def left_by_exit(self, status: object, frame: FrameType) -> None:
        """A process ends itself: the line that does it."""
        code = status if type(status) is int else 0
        journal.write(LeftByExit(code=code, frames=tracebacks.stack(frame), step=flight.steps(), in_work=_in_work()))

    def child_ended(self, pid: int, code: int) -> None:
        journal.write(ChildEnded(child=pid, code=code))

    def _measured(self, error: BaseException) -> Measured:
        """Descriptors and shared memory always; file systems if there was no room, or something was being saved."""
        workers = [pid for iterator in self.living() for pid in loading.workers_of(iterator)]
        return Measured(
            descriptors=_part("descriptors", resources.descriptors),
            crowded=resources.crowded_workers(workers),
            shared_memory=_part("shared memory", resources.shared_memory, workers),
            sharing=_sharing_strategy(),
            file_systems=_part("file systems", _file_systems, error) or [],
        )


# --- what this process is at, as its flight file has it ------------------------------------------------------------


def _in_work() -> SampleInWork:
    """The sample that it is fetching, and the file it opened last."""
    words = flight.words
    if not words[at.W_FETCHING]:
        return SampleInWork(worker=_worker())
    key = flight.text(at.W_KEY_LENGTH, at.KEY_AT, at.KEY_SIZE)
    if words[at.W_POSITION] == at.COLLATING:
        return SampleInWork(worker=_worker(), key=key, collating=True)
    return SampleInWork(worker=_worker(), sample=_known(words[at.W_SAMPLE]), key=key, opened=attempts.last())


def _worker() -> int | None:
    return _known(flight.words[at.W_WORKER])


def _position(index: Any) -> int | None:
    """Of the sample in its batch."""
    sample, place = flight.words[at.W_SAMPLE], flight.words[at.W_POSITION]
    if place >= 0:
        return place
    if (type(index) is list or type(index) is tuple) and sample >= 0 and place != at.COLLATING:
        numbered = enumerate(index[:MOST_INDICES])
        return next((n for n, number in numbered if type(number) is int and number == sample), None)
    return None


def _known(word: int) -> int | None:
    return None if word < 0 else word


# --- what is measured ----------------------------------------------------------------------------------------------


def _part(name: str, read: Callable[..., T], *arguments: Any) -> T | None:
    """What is read beside the exception must not cost the exception."""
    try:
        return read(*arguments)
    except Exception as fault:
        guard.off(name, fault)
        return None


def _device(error: BaseException) -> DeviceState | None:
    """Of a GPU, where it was its memory that ran out."""
    if not any(objects.class_name(type(cause)) == "OutOfMemoryError" for cause in tracebacks.chained(error)):
        return None
    from . import device_owners

    return device_owners.state(error)


def _file_systems(error: BaseException) -> list[FileSystem]:
    return resources.written_to(tracebacks.chained(error), tracebacks.saving(error))


def _sharing_strategy() -> str:
    module = sys.modules.get("torch.multiprocessing")
    return str(module.get_sharing_strategy()) if module is not None else ""


def _exits(iterators: list[Any]) -> list[WorkerExit]:
    """Every worker of these loaders, and how it ended, as far as it has."""
    return [
        WorkerExit(worker=number, pid=worker.pid, exitcode=worker.exitcode)
        for iterator in iterators
        for number, worker in enumerate(objects.Own(iterator).get("_workers") or ())
        if getattr(worker, "_parent_pid", None) == os.getpid()
    ]
