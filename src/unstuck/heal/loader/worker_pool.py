"""The workers of one loader: stands where torch's iterator expects a multiprocessing context with its queues, processes
and event, reads what comes, and replaces workers that die or hang."""

from __future__ import annotations

import inspect
import os
import pickle
import queue
import select
import signal
import threading
import time
from collections import deque
from multiprocessing.reduction import ForkingPickler

from torch._utils import ExceptionWrapper
from torch.utils.data import _utils

from . import blame, shared_storages
from .care import NOTHING, Care
from .quarantine import Act, BadSample, LoaderError, Quarantine, WorkersKeepDying, tell
from .seat import END_SECONDS, UNPICKLABLE, Seat, Task, parents_ends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .sample_care import Found
    from .seat import Loss, Sent
    from .wire import Message

CHECK_SECONDS = 1.0  # between two looks at workers from which nothing came
FALSE_STARTS = 10  # workers in a row that may die before they have fetched anything


class Refusal(ExceptionWrapper):  # type: ignore[misc]  # torch is not typed here
    """A batch that cannot be had; torch raises it in the training when its turn comes."""

    def __init__(self, error: BaseException) -> None:
        super().__init__((type(error), error, None), "in the training")
        self.error = error

    def reraise(self) -> None:
        raise self.error


class Answer:
    """A batch that came, with its number; `data` may be NOTHING."""

    __slots__ = ("data", "number")

    def __init__(self, number: int, data: Any) -> None:
        self.number, self.data = number, data

    def pin_memory(self) -> Answer:
        from torch.utils.data._utils.pin_memory import pin_memory

        return Answer(self.number, pin_memory(self.data)) if self.data is not NOTHING else self


class DoneEvent:
    """torch sets it when all workers shall end."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool, self._set = pool, False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self._pool.stop()


class WorkerPool:
    """`context` is the real one. `Queue`, `Event` and `Process` are called by torch, in this order: the queue of
    results, the event, then a queue of indices and a process for each worker."""

    def __init__(self, context: Any, care: Care, quarantine: Quarantine, iterable: bool) -> None:
        self.context, self.care, self.quarantine, self.iterable = context, care, quarantine, iterable
        self.lock = threading.RLock()
        self.seats: list[Seat] = []
        self.running = False
        self.loop: Callable[..., None]
        self._results: Results | None = None
        self._ready: deque[tuple[Any, Any]] = deque()
        self._epoll = select.epoll()
        self._by_descriptor: dict[int, Seat] = {}
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._epoll.register(self._wake, select.EPOLLIN)
        self.lifeline, life = os.pipe2(os.O_CLOEXEC)
        self._life = os.fdopen(life, "wb", buffering=0)
        """Of workers, which die when this process has ended, or closed it."""
        parents_ends.add(self._life)
        self._spare = os.dup(self._wake)
        """A descriptor to do without where there are too many."""
        self._starts: list[dict[str, Any]] = []
        self._look_at = 0.0
        self._false_starts = 0
        self._failure: LoaderError | None = None
        self._ends_at = 0.0
        self._told_of_seeds = False

    # --- as a multiprocessing context ----------------------------------------------------------------------

    def Queue(self) -> Any:
        if self._results is None:
            self._results = Results(self)
            return self._results
        self.seats.append(Seat(self, len(self.seats)))
        return self.seats[-1]

    def Event(self) -> DoneEvent:
        return DoneEvent(self)

    def Process(self, target: Callable[..., None], args: tuple[Any, ...]) -> Seat:
        self.loop = target
        self._starts.append(dict(inspect.signature(target).bind(*args).arguments))
        return self.seats[len(self._starts) - 1]

    @property
    def batched(self) -> bool:
        return bool(self._starts[0]["auto_collation"])

    def arguments_of(self, seat: Seat) -> dict[str, Any]:
        """Of torch's worker loop. A worker in the place of another gets a seed that no other has; not so one that
        goes on with a stream, which has to draw the same items again."""
        start = dict(self._starts[seat.number], index_queue=None, data_queue=None, done_event=None)
        if not self.iterable:
            start["base_seed"] += self.quarantine.restarts * len(self.seats)
        return start

    def unpicklable(self, error: BaseException) -> pickle.PicklingError:
        what, method = type(self._starts[0]["dataset"]).__name__, self.context.get_start_method()
        for name, option in (("collate_fn", "collate_fn"), ("init_fn", "worker_init_fn")):
            try:
                ForkingPickler.dumps(self._starts[0][name])
            except UNPICKLABLE:
                what = f"what was passed as {option}"
        return pickle.PicklingError(f"{what} cannot be pickled, which workers started by {method!r} need: {error}")

    # --- what is watched -----------------------------------------------------------------------------------

    def register(self, descriptor: int, seat: Seat, events: int) -> None:
        self._by_descriptor[descriptor] = seat
        self._epoll.register(descriptor, events)

    def modify(self, descriptor: int, events: int) -> None:
        self._epoll.modify(descriptor, events)

    def unregister(self, descriptor: int) -> None:
        """Also before it is closed: a forked worker may still hold it."""
        self._by_descriptor.pop(descriptor, None)
        self._epoll.unregister(descriptor)

    # --- batches -------------------------------------------------------------------------------------------

    def wanted(self, seat: Seat, number: int, index: Any) -> None:
        """torch wants a batch of this worker."""
        task = Task(number, index, list(index) if self.batched else [index])
        self.quarantine.drawn += len(task.samples)
        if self.care.keeps_going and self.quarantine.deadly and not self.iterable:
            for position, sample in enumerate(task.samples):
                before = self.quarantine.known(sample)
                if before is not None:
                    self.leave_out(task, position, "known", before.what, "", seat.number)
        self.send(seat, task)

    def send(self, seat: Seat, task: Task) -> None:
        if self._failure is not None:
            self.refuse(task, self._failure)
        elif task.bad and not task.remaining:
            self._ready.append((task.number, Answer(task.number, NOTHING)))
        else:
            seat.order((task.number, task.index), task)

    def refuse(self, task: Task, error: BaseException) -> None:
        if not task.stale:
            self._ready.append((task.number, Refusal(error)))

    def leave_out(
        self, task: Task, position: int, reason: str, what: str, traceback: str, worker: int
    ) -> None:  # fmt: skip
        """Write it down. A batch without it is fetched next; where another takes its place, its worker says which."""
        row = BadSample(task.samples[position], reason, what, traceback, worker, task.number, self.quarantine.epoch)
        task.bad[position] = row
        self._note(row)

    def _note(self, row: BadSample) -> None:
        try:
            self.quarantine.add(row)
        except LoaderError as error:
            self.fail(error)

    def fail(self, error: LoaderError) -> None:
        """Every batch from here on is refused."""
        if self._failure is None:
            self._failure = error
            tell(Act("gave up", str(error)))
        for seat in self.seats:
            while seat.sent:
                sent = seat.sent.popleft()
                if sent.task is not None and sent.alone is None:
                    self.refuse(sent.task, self._failure)

    # --- what comes ----------------------------------------------------------------------------------------

    def get(self, timeout: float) -> tuple[Any, Any]:
        until = time.monotonic() + timeout
        while True:
            with self.lock:
                if self._ready:
                    return self._ready.popleft()
            left = until - time.monotonic()
            if left <= 0:
                raise queue.Empty
            events = self._epoll.poll(min(left, self._until_look()))
            with self.lock:
                self._handle(events)

    def put(self, result: tuple[Any, Any]) -> None:
        """By torch, to wake the thread that pins memory."""
        with self.lock:
            self._ready.append(result)
        os.write(self._waker, b".")

    def _handle(self, events: list[tuple[int, int]]) -> None:
        for descriptor, event in events:
            seat = self._by_descriptor.get(descriptor)
            if descriptor == self._wake:
                os.read(self._wake, 64)
            if seat is None or not seat.at_work:
                continue
            if event & select.EPOLLOUT:
                seat.flush()
            while (message := seat.receive()) is not None:
                self._came(seat, message)
            if seat.is_over(descriptor):
                self._lost(seat)
                break  # descriptors of the new worker may have the numbers of other events here
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + CHECK_SECONDS
            self._look(time.monotonic_ns())

    def _came(self, seat: Seat, message: Message) -> None:
        try:
            serial, number, data, found = shared_storages.unpack(message)
        except Exception as error:
            self._cannot_unpack(seat, error)
            return
        seat.answered += 1
        self._false_starts = 0
        sent = seat.answer_to(serial)
        if sent is None:
            return
        if sent.task is None:
            self._ready.append((number, data))
        elif sent.alone is not None:
            sent.task.cleared.add(sent.alone)
        else:
            self._delivered(seat, sent.task, data, found)

    def _delivered(self, seat: Seat, task: Task, data: Any, found: Found) -> None:
        if task.stale:
            self._ready.append((task.number, data))
            return
        seat.consumed = found.consumed
        for bad in found.bad:
            self._report(seat, task, bad)
        if self._failure is not None:
            self.refuse(task, self._failure)
        elif isinstance(data, ExceptionWrapper) or type(data).__name__ == "_IterableDatasetStopIteration":
            self._ready.append((task.number, data))
        else:
            self._ready.append((task.number, Answer(task.number, data)))

    def _report(self, seat: Seat, task: Task, bad: Any) -> None:
        if bad.reason == "known":  # written down before
            return
        key = bad.position if self.iterable else task.samples[bad.position]
        other = None if bad.replaced_by is None else task.samples[bad.replaced_by]
        epoch = self.quarantine.epoch
        self._note(BadSample(key, bad.reason, bad.what, bad.traceback, seat.number, task.number, epoch, other))

    def _cannot_unpack(self, seat: Seat, error: Exception) -> None:
        """The batch came and cannot be had, mostly because of the number of open files: once more, as plain bytes."""
        sent = seat.sent.popleft() if seat.sent else None
        if sent is None or sent.task is None:
            return
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        if self.iterable:  # its worker has gone on
            self.fail(LoaderError(f"a batch of a stream is lost ({error}): are there too many open files (ulimit -n)?"))
            self.refuse(sent.task, self._failure or error)
        elif sent.task.plain:
            self.refuse(sent.task, error)
        else:
            sent.task.plain = True
            seat.order(sent.message, sent.task, sent.alone)

    # --- workers that are lost -----------------------------------------------------------------------------

    def _until_look(self) -> float:
        if self.care.sample_timeout is None:
            return CHECK_SECONDS
        return max(0.0, min(self._look_at - time.monotonic(), CHECK_SECONDS, self.care.sample_timeout / 4))

    def _look(self, now: int) -> None:
        """At workers that nothing came from."""
        limit = self.care.sample_timeout
        if limit is not None:
            self._look_at = time.monotonic() + min(CHECK_SECONDS, limit / 4)
        for seat in self.seats:
            if seat.is_dead():
                self._lost(seat)
            elif limit is not None and (since := seat.hangs_since()) and now - since > limit * 1e9:
                self._lost(seat, (now - since) / 1e9)

    def _lost(self, seat: Seat, hung_for: float | None = None) -> None:
        if seat.leaving or _utils.python_exit_status:  # multiprocessing ends them when Python ends
            seat.leave()
            return
        messages, loss = seat.bury(hung_for)
        for message in messages:
            self._came(seat, message)
        if loss.sent is not None and loss.sent not in seat.sent:  # its answer was complete
            loss = blame.without_culprit(loss)
        try:
            self.quarantine.restarted(loss.cause)
            self._check_start(loss)
        except LoaderError as error:
            self.fail(error)
            return
        tell(Act("replaced worker", blame.said(loss, self._once()), worker=seat.number, reason=loss.cause))
        self._replace(seat, loss)

    def _check_start(self, loss: Loss) -> None:
        if loss.answered or loss.sent is not None:
            self._false_starts = 0
        elif loss.exit_code != -signal.SIGKILL:  # which comes from outside, and counts as a restart
            self._false_starts += 1
        if self._false_starts > FALSE_STARTS:
            raise WorkersKeepDying(
                f"{self._false_starts} workers in a row died before they fetched anything; the last one {loss.cause}. "
                "Look at worker_init_fn, and at what the script does when it is imported."
            )

    def _replace(self, seat: Seat, loss: Loss) -> None:
        orders: list[Sent] = list(seat.sent)
        seat.sent.clear()
        try:
            seat.begin()
        except Exception as error:
            self.fail(WorkersKeepDying(f"a worker {loss.cause}, and no other can be started: {error}"))
            for sent in orders:
                if sent.task is not None and sent.alone is None and self._failure is not None:
                    self.refuse(sent.task, self._failure)
            return
        alone = blame.suspects(self, seat, loss)
        for sent in orders:
            task = sent.task
            if task is None:
                self._ready.append((sent.message, None))  # a new worker has nothing to begin anew
            elif sent.alone is None and not task.stale and not task.refused:
                if loss.sent is not None and task is loss.sent.task:
                    self._try_alone(seat, task, alone)
                self.send(seat, task)

    def _try_alone(self, seat: Seat, task: Task, positions: list[int]) -> None:
        for position in positions:
            key = task.samples[position]
            seat.order((task.number, [key] if self.batched else key), task, alone=position)

    def _once(self) -> bool:
        told, self._told_of_seeds = self._told_of_seeds, True
        return not told and not self.iterable

    def begin_again(self) -> None:
        """A new epoch of persistent workers: what the last one failed at is over."""
        self._failure = None
        self._false_starts = 0

    # --- at the end ----------------------------------------------------------------------------------------

    def stop(self) -> None:
        self._ends_at = time.monotonic() + END_SECONDS
        for seat in self.seats:
            seat.stop()

    def patience(self) -> float:
        """Seconds that workers have left to end by themselves, all together."""
        return max(0.0, self._ends_at - time.monotonic()) if self._ends_at else END_SECONDS

    def close(self) -> None:
        for seat in self.seats:
            seat.close_all()
        self._epoll.close()
        parents_ends.discard(self._life)
        self._life.close()
        for descriptor in (self._wake, self._waker, self.lifeline, self._spare):
            if descriptor >= 0:
                os.close(descriptor)


class Results:
    """What torch takes for the queue of results."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self.put = pool.put

    def get(self, timeout: float) -> tuple[Any, Any]:
        return self._pool.get(timeout)

    def cancel_join_thread(self) -> None: ...

    def close(self) -> None: ...
