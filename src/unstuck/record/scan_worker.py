"""One worker of a scan: fetches samples one by one, notes which is in work, gathers what is in them."""

from __future__ import annotations

import faulthandler
import mmap
import os
import pickle
import signal
import struct
import sys
from time import monotonic, monotonic_ns

from . import errors, gathered, samples_stacked, sites

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

W_INDEX, W_SINCE, W_DONE, WORDS = 0, 1, 2, 4
"""On the board, for each worker: the sample in work, since when (0: none), samples done."""
SIGNAL = signal.SIGRTMIN + 6
FLUSH = 0.4
"""Seconds after which a worker hands over what it has gathered."""
STACK = 1024
"""Samples that are put together at a time,"""
BYTES = 1 << 24
"""and bytes of them."""
SLOW = 0.05
MANY = 200
"""Samples that raise, or are slow, of which a worker keeps an account."""
BUCKETS = 48


class Seen:
    """What one worker saw since it last handed over."""

    def __init__(self) -> None:
        self.gathered = gathered.Gathered(whole=True)
        self.prints: list[tuple[int, int]] = []
        self.raised: list[dict[str, Any]] = []
        self.slow: list[tuple[float, int]] = []
        self.times = [0] * BUCKETS
        """Samples by the bit length of their nanoseconds."""
        self.samples = self.failed = 0
        self.odd: dict[str, int] = {}
        """Why parts of samples could not be read."""

    def merge(self, other: Seen) -> None:
        self.gathered.merge(other.gathered)
        self.prints += other.prints
        self.raised = (self.raised + other.raised)[:MANY]
        self.slow = sorted(self.slow + other.slow, reverse=True)[:MANY]
        self.times = [mine + theirs for mine, theirs in zip(self.times, other.times, strict=True)]
        self.samples += other.samples
        self.failed += other.failed
        for why, count in other.odd.items():
            self.odd[why] = self.odd.get(why, 0) + count


class Board:
    """A few words a worker, in a file that both sides map: it can be read while the worker hangs."""

    def __init__(self, path: str, workers: int) -> None:
        size = workers * WORDS * 8
        with open(path, "a+b") as file:
            if os.fstat(file.fileno()).st_size < size:
                os.posix_fallocate(file.fileno(), 0, size)
            self.words = memoryview(mmap.mmap(file.fileno(), size)).cast("q")


def work(
    dataset: Any, pipe: Any, number: int, workers: int, folder: str, iterable: bool, init: Any, limit: int | None
) -> None:
    """Until there is nothing more to do. Tasks: (name, indices); answers: see `_Worker`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that asks us
    with open(os.path.join(folder, f"stack-{number}-{os.getpid()}"), "w") as stacks:
        faulthandler.register(SIGNAL, file=stacks, all_threads=False)
        _as_loader_worker(dataset, number, workers, init)
        _Worker(dataset, pipe, Board(os.path.join(folder, "board"), workers).words, number).run(iterable, limit)


def _as_loader_worker(dataset: Any, number: int, workers: int, init: Any) -> None:
    """As in a worker of a DataLoader: one thread, a seed of its own, and the user's function for its start."""
    import random

    import torch.utils.data._utils.worker

    torch.set_num_threads(1)
    random.seed(number)
    torch.manual_seed(number)
    worker = torch.utils.data._utils.worker
    worker._worker_info = worker.WorkerInfo(id=number, num_workers=workers, seed=number, dataset=dataset)
    if init is not None:
        init(number)


class _Worker:
    """Answers ("done", name) for each task, and ("seen", names, pickled Seen, …) now and then."""

    def __init__(self, dataset: Any, pipe: Any, words: Any, number: int) -> None:
        self.dataset, self.pipe, self.words, self.at = dataset, pipe, words, number * WORDS
        self.seen = Seen()
        self.names: list[int] = []
        self.handed = monotonic()
        self.waiting: list[tuple[int, Any]] = []
        self.size = 0
        self.part = 0
        """Samples of the task in work that were not handed over."""

    def run(self, iterable: bool, limit: int | None) -> None:
        if iterable:
            self.stream(limit)
        else:
            self.pipe.send(("ready",))
            while (task := self.pipe.recv()) is not None:
                name, indices = task
                for index in indices:
                    self.fetch(index)
                    self.part += 1
                    if monotonic() - self.handed > FLUSH:
                        self.hand_over(name)
                self.names.append(name)
                self.part = 0
                self.pipe.send(("done", name))
        self.hand_over()
        self.pipe.send(("end",))

    def fetch(self, index: int) -> None:
        words, at = self.words, self.at
        words[at + W_INDEX] = index
        words[at + W_SINCE] = began = monotonic_ns()
        try:
            sample = self.dataset[index]
        except Exception as error:
            words[at + W_SINCE] = 0
            self.failed(index, error)
            return
        self.note(index, sample, began)

    def note(self, index: int, sample: Any, began: int) -> None:
        took = monotonic_ns() - began
        self.words[self.at + W_SINCE] = 0
        self.words[self.at + W_DONE] += 1
        seen = self.seen
        seen.samples += 1
        seen.times[min(BUCKETS - 1, took.bit_length())] += 1
        if took > SLOW * 1e9 and len(seen.slow) < MANY:
            seen.slow.append((took / 1e9, index))
        if not self.waiting:
            self.size = _bytes(sample)
        self.waiting.append((index, sample))
        if len(self.waiting) >= STACK or len(self.waiting) * self.size > BYTES:
            self.stack()

    def failed(self, index: int, error: Exception) -> None:
        self.words[self.at + W_DONE] += 1
        self.seen.failed += 1
        if len(self.seen.raised) < MANY:
            self.seen.raised.append({"sample": index, **raised(error)})

    def stream(self, limit: int | None) -> None:
        """A data set that is iterated: an error in it ends it."""
        words, at = self.words, self.at
        index, name = 0, 0
        try:
            words[at + W_SINCE] = monotonic_ns()
            source = iter(self.dataset)
            while limit is None or index < limit:
                words[at + W_INDEX] = index
                words[at + W_SINCE] = began = monotonic_ns()
                try:
                    sample = next(source)
                except StopIteration:
                    break
                self.note(index, sample, began)
                index += 1
                if monotonic() - self.handed > FLUSH:
                    self.stack()
                    self.names.append(name := name + 1)
                    self.hand_over()
        except Exception as error:
            self.failed(index, error)
        words[at + W_SINCE] = 0
        self.stack()

    def stack(self) -> None:
        """Take in the samples that wait. What cannot be read of them costs only that."""
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        indices, samples = [index for index, _ in waiting], [sample for _, sample in waiting]
        torch = sys.modules["torch"]
        try:
            with torch.no_grad():
                parts = list(samples_stacked.stacked(samples))
                self.seen.prints += zip(samples_stacked.prints(parts, len(samples)), indices, strict=True)
                tensors = [(path, part) for path, part in parts if type(part) is not list]
                texts = [(path, part) for path, part in parts if type(part) is list and type(part[0]) is str]
                self.seen.gathered.take_parts(tensors, texts, indices, len(samples))
                for path, part in parts:
                    if type(part) is list and type(part[0]) is not str:
                        self.seen.gathered.take_ragged(path, part, indices)
        except Exception as fault:
            why = f"{type(fault).__name__}: {fault!s}"[:200]
            self.seen.odd[why] = self.seen.odd.get(why, 0) + len(samples)

    def hand_over(self, within: int = 0) -> None:
        """`within`: the task in work, of which some is done."""
        self.stack()
        self.pipe.send(("seen", self.names, pickle.dumps(self.seen), within, self.part))
        self.seen, self.names, self.part, self.handed = Seen(), [], 0, monotonic()


def raised(error: BaseException) -> dict[str, Any]:
    """What it was, and the innermost line of the user's it came through."""
    site: list[str | int] | None = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if sites.is_user_file(code.co_filename):
            site = [sites.absolute(code.co_filename), trace.tb_lineno, sites.name_of(code)]
        trace = trace.tb_next
    return {"type": type(error).__name__, "message": errors._text(error), "site": site}


def _bytes(sample: Any) -> int:
    torch = sys.modules["torch"]
    if isinstance(sample, torch.Tensor):
        return int(sample.numel() * sample.element_size())
    if type(sample) in (list, tuple):
        return sum(_bytes(each) for each in sample[:16])
    if isinstance(sample, dict):
        return sum(_bytes(each) for each in list(sample.values())[:16])
    return int(getattr(sample, "nbytes", 0) or 0) if type(sample).__module__ == "numpy" else struct.calcsize("q")
