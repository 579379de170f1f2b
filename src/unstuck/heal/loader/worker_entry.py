"""A worker: torch's own worker loop, between our channel and our care for samples."""

from __future__ import annotations

import faulthandler
import os
import pickle
import queue
import select
import signal
import sys
import threading
from fcntl import F_SETFL, F_SETOWN, fcntl

from torch._utils import ExceptionWrapper
from torch.utils.data import _DatasetKind

from . import wire
from .care import IDLE, PHASE, SENDING, SINCE, STACK_AT, STOP, TASK, Care, Descriptor, Words
from .sample_care import Found, Order, SampleCare
from .shared_storages import collate_outside_shm, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

STACK_SIGNAL = signal.SIGRTMIN + 7  # asks a worker that hangs for its stack; +5 is the recorder's, +6 that of a scan
F_SETSIG = 10  # Linux: which signal a file sends
OOM_SCORE = 900  # of 1000: where memory runs out, a worker can be replaced and the training cannot
LOOK_MS = 100  # between two looks whether all is over, while the training does not read


class Orders:
    """What torch's loop takes for its queue of indices."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._poll = select.poll()
        self._poll.register(worker.end, select.POLLIN)

    def get(self, timeout: float) -> Any:
        words = self._worker.words
        words[SINCE] = 0
        words[PHASE] = IDLE
        try:
            while (received := wire.receive(self._worker.end)) is None:
                if not self._poll.poll(timeout * 1000):
                    raise queue.Empty
        except EOFError:
            words[STOP] = 1
            return None
        try:
            serial, message, order = pickle.loads(received.body())
        finally:
            received.close()
        words[TASK] = serial
        self._worker.begin(serial, order)
        return message


class Answers:
    """What torch's loop takes for its queue of results."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._poll = select.poll()
        self._poll.register(worker.end, select.POLLOUT)
        self._freed: queue.SimpleQueue[Any] | None = None

    def put(self, result: tuple[Any, Any]) -> None:
        worker, words = self._worker, self._worker.words
        words[PHASE] = SENDING
        words[SINCE] = 0
        try:
            packet = pack((worker.serial, *result, worker.found), worker.order.plain)
        except Exception:
            failed = ExceptionWrapper(where="in a DataLoader worker, while its batch was pickled")
            packet = pack((worker.serial, result[0], failed, worker.found))
        try:
            while not packet.send(worker.end) and not words[STOP]:
                self._poll.poll(LOOK_MS)
        except ConnectionError:  # the training is gone
            words[STOP] = 1
        except OSError:  # the sample has closed our channel: die of it here, where it can be told
            os._exit(1)
        if packet.keep:
            self._free_later(packet)

    def _free_later(self, packet: wire.Packet) -> None:
        """To take the mapping of a large batch apart takes a while, in which the next one can be fetched."""
        if self._freed is None:
            self._freed = queue.SimpleQueue()
            threading.Thread(target=_free, args=(self._freed,), daemon=True, name="unstuck-free").start()
        self._freed.put(packet)

    def cancel_join_thread(self) -> None: ...

    def close(self) -> None: ...


class Done:
    """What torch's loop takes for the event that says that all is over."""

    def __init__(self, words: Any) -> None:
        self._words = words

    def is_set(self) -> bool:
        return bool(self._words[STOP])


class Worker:
    """One worker process."""

    def __init__(self, end: socket.socket, page: Words, care: Care, skipped: int) -> None:
        self.end, self.words = end, page.words
        self.order, self.found, self.serial = Order(), Found(), 0
        self.samples = SampleCare(care, self.words, skipped)
        self._page = page

    def begin(self, serial: int, order: Order) -> None:
        self.serial = serial
        self.order = self.samples.order = order
        self.found = self.samples.found = Found()

    def run(self, loop: Callable[..., None], start: dict[str, Any]) -> None:
        """`start` are the arguments of torch's loop; those that the pool put there are replaced."""
        make, samples, page = _DatasetKind.create_fetcher, self.samples, self._page

        def create_fetcher(kind: int, *rest: Any) -> Any:
            if not faulthandler.is_enabled():  # the stack of a crash, unless the recorder keeps it already:
                faulthandler.enable(file=page.descriptor, all_threads=True)  # over torch's handlers, which are in place
            fetcher = make(kind, *rest)
            samples.take(fetcher, kind == _DatasetKind.Iterable)
            return fetcher

        _DatasetKind.create_fetcher = staticmethod(create_fetcher)
        start.update(index_queue=Orders(self), data_queue=Answers(self), done_event=Done(self.words))
        loop(**start)


def serve(
    loop: Callable[..., None],
    start: dict[str, Any],
    end: socket.socket,
    lifeline: Descriptor,
    page: Words,
    care: Care,
    skipped: int,
) -> None:
    """The whole life of a worker."""
    _die_with_training(lifeline.number)
    _be_first_to_go()
    end.setblocking(False)
    os.lseek(page.descriptor, STACK_AT, os.SEEK_SET)
    faulthandler.register(STACK_SIGNAL, file=page.descriptor, all_threads=True, chain=False)
    if not _is_recorded():
        faulthandler.disable()  # so that torch's handlers, set next, come beneath ours
    collate_outside_shm()
    try:
        Worker(end, page, care, skipped).run(loop, start)
    finally:
        end.close()  # the training sees it now: threads that the dataset started may keep this process for long
        faulthandler.unregister(STACK_SIGNAL)


def _is_recorded() -> bool:
    """By `unstuck run`, or by `watch()`."""
    guards = (sys.modules.get(f"{package}.guard") for package in ("_unstuck_recorder", "unstuck.recorder"))
    return any(guard is not None and guard.installed() for guard in guards)


def _die_with_training(lifeline: int) -> None:
    """The training holds the other end of this pipe: when that is closed, the kernel kills this process, whatever it is
    doing. (The parent-death signal would also come when a thread ends, and not from behind a fork server.)"""
    try:
        own = os.open(
            f"/proc/self/fd/{lifeline}", os.O_RDONLY | os.O_NONBLOCK
        )  # its owner is set for this worker alone
        fcntl(own, F_SETOWN, os.getpid())
        fcntl(own, F_SETSIG, signal.SIGKILL)
        fcntl(own, F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
    except OSError:  # a system without it: the end of the channel says the same, once the sample is done
        return
    finally:
        os.close(lifeline)
    watched = select.poll()
    watched.register(own, 0)
    if watched.poll(0):  # closed before
        os._exit(1)


def _free(queued: queue.SimpleQueue[Any]) -> None:
    while True:
        queued.get()


def _be_first_to_go() -> None:
    try:
        with open("/proc/self/oom_score_adj", "r+") as score:
            if int(score.read()) < OOM_SCORE:
                score.seek(0)
                score.write(str(OOM_SCORE))
    except (OSError, ValueError):
        pass
