"""Fetches samples, shows which one is in work, and gathers what is in them: in a worker of a scan, or in the script's
own process."""

from __future__ import annotations

import array
import ctypes
import faulthandler
import os
import pickle
import signal
import sys
from time import monotonic, monotonic_ns

from ..recorder import tensors, user_code
from ..recorder.probes.data import statistics
from ..recorder.probes.death import tracebacks
from ..recorder.records.data import FailedSample
from . import sample_contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ..recorder.records import Site
    from .plan import Plan

AT, SINCE, COUNT = range(3)  # what each worker shows: the position in work, since when (0: none), how many are in work
STACK_SIGNAL = signal.SIGRTMIN + 6  # asks a worker for its stack
PR_SET_PDEATHSIG = 1
SLICE_SECONDS = 0.4  # after which a worker hands over what it has gathered
MOST_STACKED, MOST_BYTES = 1024, 1 << 24  # samples, and bytes of them, that are put together at a time
SLOW_SECONDS = 0.05  # from which on a sample's time is noted
MOST_SLOW = 200  # slow samples that are kept
MOST_NAMED = 50  # samples of one error that are named
MOST_KINDS = 20  # of errors
MOST_PRINTS = 1 << 25  # samples that are compared with one another: more would take too much memory
BUCKETS = 48  # of the histogram of durations


class TooSlow(BaseException):
    """A sample in the script's own process has taken too long. No `except Exception` may swallow it."""


class Errors:
    """Samples that raise the same error at the same line: the first of them, and how many there are."""

    def __init__(self) -> None:
        self.first: list[FailedSample] = []
        self.count = 0

    def add(self, samples: list[FailedSample], count: int) -> None:
        self.count += count
        self.first = sorted([*self.first, *samples], key=lambda bad: bad.sample or 0)[:MOST_NAMED]


class Seen:
    """What was seen since it was last handed over. A sample goes by its position among those that are read, also in the
    records here; `pass_outcome` puts its number there."""

    def __init__(self) -> None:
        self.gathered = statistics.Gathered(whole=True)
        self.prints = array.array("q")
        self.positions = array.array("q")  # of each print, that of its sample
        self.unprinted = 0
        self.errors: dict[tuple[str, Site | None], Errors] = {}  # by name of the exception and line
        self.slow: list[tuple[float, int]] = []
        self.times = [0] * BUCKETS  # samples by the bit length of their nanoseconds
        self.samples = self.failed = 0
        self.odd: dict[str, int] = {}  # why parts of samples could not be read

    def failing(self, position: int, kind: str, message: str, site: Site | None) -> None:
        self.failed += 1
        if (kind, site) in self.errors or len(self.errors) < MOST_KINDS:
            self.errors.setdefault((kind, site), Errors()).add([FailedSample(sample=position, message=message)], 1)

    def merge(self, other: Seen) -> None:
        self.gathered.merge(other.gathered)
        if len(self.prints) < MOST_PRINTS:
            self.prints += other.prints
            self.positions += other.positions
        self.unprinted += other.unprinted
        for key, found in other.errors.items():
            self.errors.setdefault(key, Errors()).add(found.first, found.count)
        self.slow = sorted(self.slow + other.slow, reverse=True)[:MOST_SLOW]
        self.times = [mine + theirs for mine, theirs in zip(self.times, other.times, strict=True)]
        self.samples += other.samples
        self.failed += other.failed
        for why, count in other.odd.items():
            self.odd[why] = self.odd.get(why, 0) + count

    def median(self) -> float:
        """Seconds of a sample, from the histogram: the middle of the bucket."""
        half, count = sum(self.times) / 2, 0
        for bits, number in enumerate(self.times):
            count += number
            if number and count >= half:
                return 0.75 * 2.0**bits / 1e9
        return 0.0


class Reader:
    """Reads samples; `words` show which."""

    def __init__(self, plan: Plan, words: Any) -> None:
        self.plan, self.dataset, self.words = plan, plan.dataset, words
        self.seen = Seen()
        self.printer = sample_contents.Printer(across=plan.method != "fork")
        self._waiting: list[tuple[int, Any]] = []
        """Samples that were fetched and not yet looked at."""
        self._size = 0

    def take(self) -> Seen:
        """What was seen since the last time."""
        self._look()
        seen, self.seen = self.seen, Seen()
        return seen

    def read(self, positions: Sequence[int], singly: bool) -> int:
        """For a while; how many were read."""
        step, until, done = 1 if singly else self.plan.batched or 1, monotonic() + SLICE_SECONDS, 0
        while done < len(positions) and (not done or monotonic() < until):
            self._fetch(positions[done : done + step])
            done += step
        return min(done, len(positions))

    def _fetch(self, positions: Sequence[int]) -> None:
        """As the loader's own fetcher does: one by one, or several at once where the dataset gives them so."""
        words = self.words
        words[AT], words[COUNT] = positions[0], len(positions)
        words[SINCE] = began = monotonic_ns()
        try:
            samples = self._get(positions)
        except (TooSlow, GeneratorExit):
            words[SINCE] = 0
            raise
        except BaseException as error:
            words[SINCE] = 0
            if len(positions) > 1:
                for position in positions:
                    self._fetch([position])
            else:
                self._failed(positions[0], error)
            return
        took = (monotonic_ns() - began) // len(positions)
        for position, sample in zip(positions, samples, strict=False):
            self._note(position, sample, took)

    def stream(self) -> Iterator[None]:
        """Read a dataset that is iterated, and yield now and then; an error in it ends it."""
        words, position, until = self.words, 0, monotonic() + SLICE_SECONDS
        words[COUNT] = 1
        try:
            words[SINCE] = monotonic_ns()
            source = iter(self.dataset)
            while self.plan.limit is None or position < self.plan.limit:
                words[AT] = position
                words[SINCE] = began = monotonic_ns()
                try:
                    sample = next(source)
                except StopIteration:
                    break
                self._note(position, sample, monotonic_ns() - began)
                position += 1
                if monotonic() > until:
                    yield
                    until = monotonic() + SLICE_SECONDS
        except (TooSlow, GeneratorExit):
            raise
        except BaseException as error:
            self._failed(position, error)
        finally:
            words[SINCE] = 0

    def again(self, position: int) -> tuple[int, float, int]:
        """Fetch it once more: how long it takes this time, and its print."""
        words = self.words
        words[AT], words[COUNT] = position, 1
        words[SINCE] = began = monotonic_ns()
        try:
            sample = self._get([position])[0]
            took = (monotonic_ns() - began) / 1e9
            return position, took, self.printer.prints(list(sample_contents.stacked([sample])), 1)[0]
        except GeneratorExit:
            raise
        except BaseException:
            return position, 0.0, sample_contents.NONE
        finally:
            words[SINCE] = 0

    def _get(self, positions: Sequence[int]) -> Any:
        keys: Any = self.plan.keys
        if self.plan.batched:
            return self.dataset.__getitems__([keys[position] for position in positions])
        return [self.dataset[keys[positions[0]]]]

    def _failed(self, position: int, error: BaseException) -> None:
        self.seen.failing(position, type(error).__name__, tracebacks.text(error), line_of(error))

    def _note(self, position: int, sample: Any, took: int) -> None:
        self.words[SINCE] = 0
        seen = self.seen
        seen.samples += 1
        seen.times[min(BUCKETS - 1, took.bit_length())] += 1
        if took > SLOW_SECONDS * 1e9 and len(seen.slow) < MOST_SLOW:
            seen.slow.append((took / 1e9, position))
        if not self._waiting:
            self._size = tensors.total_bytes(sample, subclasses=True)
        self._waiting.append((position, sample))
        if len(self._waiting) >= MOST_STACKED or len(self._waiting) * self._size > MOST_BYTES:
            self._look()

    def _look(self) -> None:
        """At the samples that wait. What cannot be read of them costs only that."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            with sys.modules["torch"].no_grad():
                if self.plan.batches:
                    for position, batch in waiting:
                        self.seen.gathered.take(batch, self.plan.rows(position))
                else:
                    self._gather([position for position, _ in waiting], [sample for _, sample in waiting])
        except Exception as fault:
            why = f"{type(fault).__name__}: {fault!s}"[:200]
            self.seen.odd[why] = self.seen.odd.get(why, 0) + len(waiting)

    def _gather(self, positions: list[int], samples: list[Any]) -> None:
        seen, parts = self.seen, list(sample_contents.stacked(samples))
        for position, fingerprint in zip(positions, self.printer.prints(parts, len(samples)), strict=True):
            if fingerprint != sample_contents.NONE:
                seen.prints.append(fingerprint)
                seen.positions.append(position)
            else:
                seen.unprinted += 1
        numbers = [self.plan.number(position) for position in positions]
        parts = [(path, part) for path, part in parts if not isinstance(part, sample_contents.Raw)]
        whole = [pair for pair in parts if type(pair[1]) is not list]
        texts = [pair for pair in parts if type(pair[1]) is list and type(pair[1][0]) is str]
        seen.gathered.take_parts(whole, texts, numbers, len(samples))
        for path, part in parts:
            if type(part) is list and type(part[0]) is not str:
                seen.gathered.take_ragged(path, part, numbers)


def work(plan: Plan, pipe: Any, words: Any, number: int, seed: int, stack: str, parent: int) -> None:
    """A worker: for (positions, one by one?) it answers ("seen", pickled Seen, how many of them), perhaps before all
    are read; for ("again", positions), what `again` gives; a stream it reads unasked. None ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that asks us
    if plan.method == "fork":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
    with open(stack, "w") as stacks:
        faulthandler.register(STACK_SIGNAL, file=stacks, all_threads=False)
        _become_loader_worker(plan, number, seed)
        reader = Reader(plan, words)
        if plan.keys is None:
            for _ in reader.stream():
                pipe.send(("seen", pickle.dumps(reader.take()), 0))
            pipe.send(("seen", pickle.dumps(reader.take()), 0))
            pipe.send(("end",))
            return
        pipe.send(("ready",))
        while (task := pipe.recv()) is not None:
            if task[0] == "again":
                pipe.send(("again", [reader.again(position) for position in task[1]]))
            else:
                done = reader.read(*task)
                pipe.send(("seen", pickle.dumps(reader.take()), done))


def _become_loader_worker(plan: Plan, number: int, seed: int) -> None:
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


def line_of(error: BaseException) -> Site | None:
    """The innermost line of the user's that it came through."""
    site: Site | None = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if user_code.is_user_file(code.co_filename):
            site = user_code.absolute(code.co_filename), trace.tb_lineno, user_code.name_of(code)
        trace = trace.tb_next
    return site
