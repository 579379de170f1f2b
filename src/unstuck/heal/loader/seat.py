"""The place of one worker, as torch sees it: a queue of indices and a process. The process behind it may change."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
from collections import deque
from dataclasses import dataclass, field

from . import wire
from .care import FETCHING, IDLE, PHASE, POSITION, SINCE, STARTING, STOP, TASK, UNKNOWN, Descriptor, Words
from .sample_care import Order
from .worker_entry import STACK_SIGNAL, serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .worker_pool import WorkerPool

STACK_SECONDS = 0.5  # that a hung worker gets to write its stack
EXIT_SECONDS = 1.0  # between the end of a worker's channel and that of its process
UNPICKLABLE = (pickle.PicklingError, TypeError, AttributeError)
END_SECONDS = 5.0  # that a worker gets to end by itself; as long as torch gives it
parents_ends: set[Any] = set()
"""Files and sockets that no forked child may hold: else workers would not see that the training is gone."""


def _close_parents_ends() -> None:
    for end in parents_ends:
        end.close()
    parents_ends.clear()


os.register_at_fork(after_in_child=_close_parents_ends)


@dataclass(eq=False)
class Task:
    """A batch that torch wants fetched."""

    number: int
    """torch's own."""
    index: Any
    samples: list[Any]
    """The keys in it, by position."""
    bad: dict[int, Any] = field(default_factory=dict)
    """Positions that are left out: they killed a worker, or hung."""
    failures: dict[int, int] = field(default_factory=dict)
    """By position: how often it failed while it was tried alone."""
    cleared: set[int] = field(default_factory=set)
    """Positions that were fetched alone."""
    whole_failures: int = 0
    """How often the batch failed, and no sample of it is to blame."""
    plain: bool = False
    """It is sent without descriptors."""
    stale: bool = False
    """Of an epoch that was left before its end."""
    refused: bool = False

    @property
    def remaining(self) -> list[int]:
        return [position for position in range(len(self.samples)) if position not in self.bad]


@dataclass(eq=False)
class Sent:
    """An order that has not been answered. `task` is None where a persistent worker begins a new epoch."""

    serial: int
    message: Any
    task: Task | None
    alone: int | None = None
    """The only position of the task that is fetched, to see whether it is the culprit."""


@dataclass(frozen=True)
class Loss:
    """How a worker was lost, and what it was doing."""

    worker: int
    pid: int
    exit_code: int | None
    phase: int
    sent: Sent | None
    position: int
    hung_for: float | None
    stack: str
    answered: int
    """Orders it had answered."""

    @property
    def cause(self) -> str:
        if self.hung_for is not None:
            return f"hung for {self.hung_for:.1f} s"
        if self.exit_code is not None and self.exit_code < 0:
            try:
                return f"was killed by {signal.Signals(-self.exit_code).name}"
            except ValueError:
                return f"was killed by signal {-self.exit_code}"
        return f"exited with code {self.exit_code}"

    @property
    def reason(self) -> str:
        return "hung" if self.hung_for is not None else "killed its worker"


class Seat:
    """One worker's."""

    def __init__(self, pool: WorkerPool, number: int) -> None:
        self.pool, self.number = pool, number
        self.daemon = True
        self.sent: deque[Sent] = deque()
        self.leaving = self.ended = False
        self.consumed = self.answered = 0
        """Of a stream: items that the batches so far were made of; orders that the present worker has answered."""
        self.stumbles: dict[int, int] = {}
        """Of a stream: workers lost at each item."""
        self.page = Words()
        self._process: Any = None
        self._serial = 0
        self._end: Any = None
        self._waiting: deque[wire.Packet] = deque()
        """Orders that the socket has not taken yet."""
        self._death = -1

    # --- as torch's queue of indices -----------------------------------------------------------------------

    def put(self, message: Any) -> None:
        with self.pool.lock:
            if message is None:
                self._dismiss()
            elif isinstance(message, tuple):
                self.pool.wanted(self, *message)
            else:  # a persistent worker shall begin anew
                for sent in self.sent:
                    if sent.task is not None:
                        sent.task.stale = True
                self.consumed = 0
                if not self.at_work:  # it was given up in the last epoch
                    self.begin()
                self.order(message, None)

    def cancel_join_thread(self) -> None: ...

    def close(self) -> None: ...  # of the queue

    def _dismiss(self) -> None:
        self.leaving = True
        self._send((0, None, Order()))

    # --- as a process --------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """torch would raise in the middle of the training when one of these dies; until it is done with them they are
        our own."""
        return self._process.pid if self._process is not None and self.pool.running else os.getpid()

    def start(self) -> None:
        self.begin()

    def is_alive(self) -> bool:
        """As long as it is wanted, there will be a worker."""
        return self.at_work and (not self.leaving or self._process.is_alive())

    def join(self, timeout: float | None = None) -> None:
        if self._process is not None:
            self._process.join(END_SECONDS if timeout is None else min(timeout, self.pool.patience()))

    def terminate(self) -> None:
        self.kill()

    # --- the worker ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A new worker."""
        pool = self.pool
        self.page.clear()
        ours, theirs = wire.pair()
        self.answered, self.ended = 0, False
        process = pool.context.Process(
            target=serve,
            args=(
                pool.loop,
                pool.arguments_of(self),
                theirs,
                Descriptor(pool.lifeline),
                self.page,
                pool.care,
                self.consumed,
            ),
            daemon=True,
        )
        parents_ends.add(ours)
        try:
            process.start()
        except BaseException as error:
            parents_ends.discard(ours)
            ours.close()
            if isinstance(error, UNPICKLABLE):
                raise pool.unpicklable(error) from error
            raise
        finally:
            theirs.close()
        self._process, self._end = process, ours
        self._watch_death()
        pool.register(ours.fileno(), self, select.EPOLLIN)

    def _watch_death(self) -> None:
        try:
            self._death = os.pidfd_open(self._process.pid)
        except (OSError, AttributeError):
            self._death = os.dup(self._process.sentinel)
        self.pool.register(self._death, self, select.EPOLLIN)

    def order(self, message: Any, task: Task | None, alone: int | None = None) -> None:
        self._serial += 1
        self.sent.append(Sent(self._serial, message, task, alone))
        order = Order()
        if task is not None:
            order = Order(frozenset() if alone is not None else frozenset(task.bad), task.plain)
        self._send((self._serial, message, order))

    def _send(self, message: Any) -> None:
        if self._end is None:
            return
        self._waiting.append(wire.Packet(pickle.dumps(message, pickle.HIGHEST_PROTOCOL)))
        self._push()
        if self._waiting:
            self.pool.modify(self._end.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def flush(self) -> None:
        self._push()
        if not self._waiting:
            self.pool.modify(self._end.fileno(), select.EPOLLIN)

    def _push(self) -> None:
        """As much as the socket takes now."""
        waiting = self._waiting
        try:
            while waiting and waiting[0].send(self._end):
                waiting.popleft()
        except OSError:  # nobody reads any more
            waiting.clear()

    def receive(self) -> wire.Message | None:
        """What came next; None if nothing more has."""
        if not self.ended:
            try:
                return wire.receive(self._end)
            except EOFError:
                self.ended = True
        return None

    @property
    def at_work(self) -> bool:
        return self._end is not None

    def is_over(self, descriptor: int) -> bool:
        """It ended: nothing more will come. `descriptor`: what was heard of."""
        return self._end is not None and (self.ended or descriptor == self._death)

    def is_dead(self) -> bool:
        return self._end is not None and not self._process.is_alive()

    def answer_to(self, serial: int) -> Sent | None:
        """The order that is answered; those before it never will be."""
        while self.sent and self.sent[0].serial < serial:
            self.sent.popleft()
        return self.sent.popleft() if self.sent and self.sent[0].serial == serial else None

    def hangs_since(self) -> int:
        """The clock when what is in work began, in nanoseconds; 0 if there is nothing."""
        return int(self.page.words[SINCE]) if self.sent else 0

    def bury(self, hung_for: float | None) -> tuple[list[wire.Message], Loss]:
        """End the worker if it has not ended; what it had sent completely, and how it was lost."""
        words = self.page.words
        if hung_for is not None:
            self._ask_for_stack()
        else:
            self._process.join(EXIT_SECONDS)
        self.kill()
        messages = list(iter(self.receive, None))
        sent = next((sent for sent in self.sent if sent.serial == words[TASK]), None)
        phase = words[PHASE]
        loss = Loss(
            self.number,
            self._process.pid,
            self._process.exitcode,
            phase,
            sent if phase not in (STARTING, IDLE) else None,
            words[POSITION] if phase == FETCHING else UNKNOWN,
            hung_for,
            self.page.stack(),
            self.answered,
        )
        self.leave()
        self._let_go()
        return messages, loss

    def _ask_for_stack(self) -> None:
        try:
            os.kill(self._process.pid, STACK_SIGNAL)
        except OSError:
            return
        until, size = time.monotonic() + STACK_SECONDS, 0
        while time.monotonic() < until:
            time.sleep(0.01)
            written = os.fstat(self.page.descriptor).st_size
            if written == size and size > self.page.words.nbytes:
                return
            size = written

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join(END_SECONDS)

    def leave(self) -> None:
        """Let go of the channel."""
        if self._end is None:
            return
        for descriptor in (self._end.fileno(), self._death):
            self.pool.unregister(descriptor)
        os.close(self._death)
        parents_ends.discard(self._end)
        self._end.close()
        self._end = None
        self._waiting.clear()

    def _let_go(self) -> None:
        """Of its descriptors, if it has ended."""
        process, self._process = self._process, None
        try:
            process.close()
        except (ValueError, AttributeError):
            pass

    def close_all(self) -> None:
        """The end of the seat."""
        self.leave()
        self._let_go()
        self.page.close()

    def stop(self) -> None:
        self.page.words[STOP] = 1
