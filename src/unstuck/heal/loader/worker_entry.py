"""A worker: torch's own worker loop, between our channel and our care for samples."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import pickle
import queue
import select
import signal
import socket
import sys
import threading

import torch.utils.data._utils.worker as torchs_worker
from torch._utils import ExceptionWrapper
from torch.utils.data import _DatasetKind

from . import wire
from .care import IDLE, PHASE, SENDING, SINCE, STACK_AT, STOP, TASK, Care, Words
from .sample_care import Found, Order, SampleCare
from .shared_storages import Packing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

STACK_SIGNAL = signal.SIGRTMIN + 7  # asks a worker that hangs for its stack; +5 is the recorder's, +6 that of a scan
PR_SET_PDEATHSIG = 1
OOM_SCORE = 900  # of 1000: where memory runs out, a worker can be replaced and the training cannot


class Orders:
    """What torch's loop takes for its queue of indices."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._receiver = wire.Receiver(worker.end)
        self._frames: list[wire.Frame] = []
        self._poll = select.poll()
        self._poll.register(worker.end, select.POLLIN)

    def get(self, timeout: float) -> Any:
        words = self._worker.words
        words[SINCE] = 0
        words[PHASE] = IDLE
        while not self._frames:
            if self._receiver.ended:
                words[STOP] = 1
                return None
            if not self._poll.poll(timeout * 1000):
                raise queue.Empty
            self._frames += self._receiver.frames()
        serial, message, order = pickle.loads(self._frames.pop(0).body)
        words[TASK] = serial
        self._worker.begin(serial, order)
        return message


class Answers:
    """What torch's loop takes for its queue of results."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._sender = wire.Sender(worker.end, patient=True)
        self._freed: queue.SimpleQueue[Any] | None = None

    def put(self, result: tuple[Any, Any]) -> None:
        worker, words = self._worker, self._worker.words
        words[PHASE] = SENDING
        if worker.care.sample_timeout is not None:
            words[SINCE] = 0
        packing = Packing(worker.order.plain)
        try:
            body, keep = packing.pack((worker.serial, *result, worker.found))
        except Exception:
            packing, failed = Packing(), ExceptionWrapper(where="in a DataLoader worker, while its batch was pickled")
            body, keep = packing.pack((worker.serial, result[0], failed, worker.found))
        self._sender.send(body, packing.descriptors, keep)
        if packing.descriptors:
            self._free_later(keep)

    def _free_later(self, keep: Any) -> None:
        """To take the mapping of a large batch apart takes a while, in which the next one can be fetched."""
        if self._freed is None:
            self._freed = queue.SimpleQueue()
            threading.Thread(target=_free, args=(self._freed,), daemon=True, name="unstuck-free").start()
        self._freed.put(keep)

    def cancel_join_thread(self) -> None: ...

    def close(self) -> None: ...


class Done:
    """What torch's loop takes for the event that says that all is over."""

    def __init__(self, words: Any) -> None:
        self._words = words

    def is_set(self) -> bool:
        return bool(self._words[STOP])


class Worker:
    """One worker process. `start` are the arguments of torch's loop; those that the pool put there are replaced."""

    def __init__(self, end: socket.socket, page: Words, care: Care, skipped: int, outside_shm: bool) -> None:
        self.end, self.page, self.care = end, page, care
        self.words = page.words
        self.order, self.found, self.serial = Order(), Found(), 0
        self.samples = SampleCare(care, self.words, skipped)
        self.samples.without_shm = _without_shm
        self._outside_shm = outside_shm

    def begin(self, serial: int, order: Order) -> None:
        self.serial = serial
        self.order = self.samples.order = order
        self.found = self.samples.found = Found()

    def run(self, loop: Callable[..., None], start: dict[str, Any]) -> None:
        make, samples, page = _DatasetKind.create_fetcher, self.samples, self.page

        def create_fetcher(kind: int, dataset: Any, *rest: Any) -> Any:
            _show_crashes(page.descriptor)  # over torch's handlers, which are in place by now
            fetcher = make(kind, dataset, *rest)
            samples.take(fetcher, kind == _DatasetKind.Iterable)
            if self._outside_shm:
                collate = fetcher.collate_fn
                fetcher.collate_fn = lambda data: _without_shm(collate, data)
            return fetcher

        _DatasetKind.create_fetcher = staticmethod(create_fetcher)
        start.update(index_queue=Orders(self), data_queue=Answers(self), done_event=Done(self.words))
        loop(**start)


def serve(
    loop: Callable[..., None],
    start: dict[str, Any],
    end: socket.socket,
    page: Words,
    care: Care,
    skipped: int,
    outside_shm: bool,
    parent: int,
) -> None:
    """The whole life of a worker. `parent`: it dies with this process; 0 where it must not."""
    if parent:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
    _be_first_to_go()
    end.setblocking(False)
    os.lseek(page.descriptor, STACK_AT, os.SEEK_SET)
    faulthandler.register(STACK_SIGNAL, file=page.descriptor, all_threads=True, chain=False)
    if not _recorded():
        faulthandler.disable()  # so that torch's handlers, set next, come beneath ours
    Worker(end, page, care, skipped, outside_shm).run(loop, start)
    faulthandler.unregister(STACK_SIGNAL)


def _free(queued: queue.SimpleQueue[Any]) -> None:
    while True:
        queued.get()


def _show_crashes(descriptor: int) -> None:
    """The Python stack of a crash goes into the page, unless the recorder keeps it already."""
    if not faulthandler.is_enabled():
        faulthandler.enable(file=descriptor, all_threads=True)


def _recorded() -> bool:
    """By `unstuck run` or `unstuck.watch()`."""
    return "_unstuck_recorder" in sys.modules or "unstuck.recorder.start" in sys.modules


def _without_shm(collate: Callable[[Any], Any], samples: Any) -> Any:
    """torch's collate function takes shared memory where it is called in a worker; here it must not know."""
    info, torchs_worker._worker_info = torchs_worker._worker_info, None
    try:
        return collate(samples)
    finally:
        torchs_worker._worker_info = info


def _be_first_to_go() -> None:
    try:
        with open("/proc/self/oom_score_adj", "r+") as score:
            if int(score.read()) < OOM_SCORE:
                score.seek(0)
                score.write(str(OOM_SCORE))
    except (OSError, ValueError):
        pass
