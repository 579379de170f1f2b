"""One worker of a scan: fetches samples, notes which is in work, gathers what is in them."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import pickle
import signal
import sys
from time import monotonic, monotonic_ns

from .. import tensors, user_code
from ..probes.death import errors
from . import sample_prints, samples_stacked
from .seen import BUCKETS, MANY, W_AT, W_COUNT, W_DONE, W_SINCE, WORDS, Board, Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..records import Site
    from .plan import Plan

SIGNAL = signal.SIGRTMIN + 6
PR_SET_PDEATHSIG = 1
FLUSH = 0.4
"""Seconds after which a worker hands over what it has gathered."""
STACK = 1024
"""Samples that are put together at a time,"""
BYTES = 1 << 24
"""and bytes of them."""
SLOW = 0.05


def work(plan: Plan, pipe: Any, number: int, seed: int, folder: str, parent: int) -> None:
    """Until there is nothing more to do. What is asked and answered: see `Worker.run`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that asks us
    if plan.method == "fork":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
    with open(os.path.join(folder, f"scan-stack-{number}-{os.getpid()}"), "w") as stacks:
        faulthandler.register(SIGNAL, file=stacks, all_threads=False)
        _as_loader_worker(plan, number, seed)
        words = Board(os.path.join(folder, "scan-board"), plan.workers).words
        Worker(plan, pipe, words, number).run()


def _as_loader_worker(plan: Plan, number: int, seed: int) -> None:
    """As in a worker of a DataLoader: one thread, a seed of its own, and the user's function for its start."""
    import random

    import torch.utils.data._utils.worker

    torch.set_num_threads(1)
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    worker = torch.utils.data._utils.worker
    worker._worker_info = worker.WorkerInfo(id=number, num_workers=plan.workers, seed=seed, dataset=plan.dataset)
    if plan.init is not None:
        plan.init(number)


class Worker:
    """Asked for (name, places, one by one?), it answers ("done", name), and ("seen", names, pickled Seen, …) now and
    then; for "tell", it hands over what it has; for ("again", places), it fetches these once more."""

    def __init__(self, plan: Plan, pipe: Any, words: Any, number: int) -> None:
        self.plan, self.dataset, self.pipe, self.words, self.at = plan, plan.dataset, pipe, words, number * WORDS
        self.seen = Seen()
        self.printer = sample_prints.Printer(across=plan.method != "fork")
        self.names: list[int] = []
        self.handed = monotonic()
        self.waiting: list[tuple[int, Any]] = []
        self.size = 0
        self.part = 0
        """Samples of the task in work that were not handed over."""

    def run(self) -> None:
        if self.plan.keys is None:
            self.stream()
            self.hand_over()
        else:
            self.pipe.send(("ready",))
            while (task := self.pipe.recv()) is not None:
                if task == "tell":
                    self.hand_over()
                    self.pipe.send(("told",))
                elif task[0] == "again":
                    self.pipe.send(("again", [(place, *self.again(place)) for place in task[1]]))
                else:
                    self.do(*task)
        self.pipe.send(("end",))

    def do(self, name: int, places: list[int], singly: bool) -> None:
        step = 1 if singly else self.plan.batched or 1
        for at in range(0, len(places), step):
            piece = places[at : at + step]
            self.fetch(piece)
            self.part += len(piece)
            if monotonic() - self.handed > FLUSH:
                self.hand_over(name)
        self.names.append(name)
        self.part = 0
        self.pipe.send(("done", name))

    def fetch(self, places: list[int]) -> None:
        """As the loader's own fetcher does: one by one, or several at once where the data set gives them so."""
        words, at = self.words, self.at
        words[at + W_AT], words[at + W_COUNT] = places[0], len(places)
        words[at + W_SINCE] = began = monotonic_ns()
        try:
            samples = self.get(places)
        except self.plan.catches as error:
            words[at + W_SINCE] = 0
            if len(places) > 1:
                for place in places:
                    self.fetch([place])
            else:
                self.failed(places[0], error)
            return
        took = (monotonic_ns() - began) // len(places)
        for place, sample in zip(places, samples, strict=False):
            self.note(place, sample, took)

    def get(self, places: list[int]) -> Any:
        keys: Any = self.plan.keys
        if self.plan.batched:
            return self.dataset.__getitems__([keys[place] for place in places])
        return [self.dataset[keys[places[0]]]]

    def again(self, place: int) -> tuple[float, int]:
        """How long it takes this time, and what it gives."""
        words, at = self.words, self.at
        words[at + W_AT], words[at + W_COUNT] = place, 1
        words[at + W_SINCE] = began = monotonic_ns()
        try:
            sample = self.get([place])[0]
            took = monotonic_ns() - began
            return took / 1e9, self.printer.prints(list(samples_stacked.stacked([sample])), 1)[0]
        except self.plan.catches:
            return 0.0, sample_prints.NONE
        finally:
            words[at + W_SINCE] = 0

    def note(self, place: int, sample: Any, took: int) -> None:
        self.words[self.at + W_SINCE] = 0
        self.words[self.at + W_DONE] += 1
        seen = self.seen
        seen.samples += 1
        seen.times[min(BUCKETS - 1, took.bit_length())] += 1
        if took > SLOW * 1e9 and len(seen.slow) < MANY:
            seen.slow.append((took / 1e9, place))
        if not self.waiting:
            self.size = tensors.total_bytes(sample, subclasses=True)
        self.waiting.append((place, sample))
        if len(self.waiting) >= STACK or len(self.waiting) * self.size > BYTES:
            self.stack()

    def failed(self, place: int, error: BaseException) -> None:
        self.words[self.at + W_DONE] += 1
        self.seen.failing(place, type(error).__name__, errors.text(error), line_of(error))

    def stream(self) -> None:
        """A data set that is iterated: an error in it ends it."""
        words, at, limit = self.words, self.at, self.plan.limit
        place, name = 0, 0
        try:
            words[at + W_SINCE] = monotonic_ns()
            source = iter(self.dataset)
            while limit is None or place < limit:
                words[at + W_AT] = place
                words[at + W_SINCE] = began = monotonic_ns()
                try:
                    sample = next(source)
                except StopIteration:
                    break
                self.note(place, sample, monotonic_ns() - began)
                place += 1
                if self.pipe is not None and monotonic() - self.handed > FLUSH:
                    self.names.append(name := name + 1)
                    self.hand_over()
        except self.plan.catches as error:
            self.failed(place, error)
        words[at + W_SINCE] = 0
        self.stack()

    def stack(self) -> None:
        """Take in the samples that wait. What cannot be read of them costs only that."""
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        try:
            with sys.modules["torch"].no_grad():
                if self.plan.batches:
                    for place, batch in waiting:
                        self.seen.gathered.take(batch, self.plan.rows(place))
                else:
                    self.take([place for place, _ in waiting], [sample for _, sample in waiting])
        except Exception as fault:
            why = f"{type(fault).__name__}: {fault!s}"[:200]
            self.seen.odd[why] = self.seen.odd.get(why, 0) + len(waiting)

    def take(self, places: list[int], samples: list[Any]) -> None:
        parts = list(samples_stacked.stacked(samples))
        for place, found in zip(places, self.printer.prints(parts, len(samples)), strict=True):
            if found != sample_prints.NONE:
                self.seen.prints.append(found)
                self.seen.places.append(place)
            else:
                self.seen.unprinted += 1
        numbers = [self.plan.number(place) for place in places]
        parts = [(path, part) for path, part in parts if not isinstance(part, samples_stacked.Raw)]
        whole = [pair for pair in parts if type(pair[1]) is not list]
        texts = [pair for pair in parts if type(pair[1]) is list and type(pair[1][0]) is str]
        self.seen.gathered.take_parts(whole, texts, numbers, len(samples))
        for path, part in parts:
            if type(part) is list and type(part[0]) is not str:
                self.seen.gathered.take_ragged(path, part, numbers)

    def hand_over(self, within: int = 0) -> None:
        """`within`: the task in work, of which some is done."""
        self.stack()
        self.pipe.send(("seen", self.names, pickle.dumps(self.seen), within, self.part))
        self.seen, self.names, self.part, self.handed = Seen(), [], 0, monotonic()


def line_of(error: BaseException) -> Site | None:
    """The innermost line of the user's it came through."""
    site: Site | None = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if user_code.is_user_file(code.co_filename):
            site = user_code.absolute(code.co_filename), trace.tb_lineno, user_code.name_of(code)
        trace = trace.tb_next
    return site
