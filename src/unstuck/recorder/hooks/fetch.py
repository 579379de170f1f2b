"""Seam: fetching a batch's samples, in a worker or in main: which sample is in work, and since when.

The fetcher gets its list of indices as a list that notes the position while it is iterated. Samples of 50 µs
and more are timed one by one; quicker ones as the mean of their batch, of one batch in eight.
"""

from __future__ import annotations

import sys
from functools import wraps
from itertools import islice
from time import monotonic_ns

from .. import dispatch, flight, guard, signals
from .. import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

TIMED_ABOVE = 50_000  # nanoseconds a sample
RETIME = 64  # batches
QUICK = 7  # batches of quick samples between two that are timed
KEYED = 3  # parts of a key that are written out
SHORT = 48  # characters of each
_BATCHES = (list, tuple)
LARGE = 1 << 62  # what fits into a word
_SAMPLE, _POSITION, _SINCE, _FETCHING = at.W_SAMPLE, at.W_POSITION, at.W_SAMPLE_SINCE, at.W_FETCHING


class NotedIndices(list):  # type: ignore[type-arg]  # its base stays plain at run time
    """Indices of one batch; iterating it says which one is in work. A list: torch also asks for its length."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        w, plain, sample = flight.words, int, _SAMPLE
        for index in list.__iter__(self):
            try:
                w[sample] = index if type(index) is plain else note_key(index)
            except ValueError:  # no word can hold it
                w[sample] = note_key(index)
            yield index
        w[_POSITION] = at.COLLATING


class TimedIndices(list):  # type: ignore[type-arg]  # as above
    """The same for slower samples, each with its own time."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        w = flight.words
        for index in list.__iter__(self):
            w[_SAMPLE] = index if type(index) is int and index < LARGE else note_key(index)
            w[_SINCE] = began = monotonic_ns()
            yield index
            flight.count(at.SAMPLE_KIND, monotonic_ns() - began)
        w[_POSITION] = at.COLLATING
        w[_SINCE] = monotonic_ns()


def note_key(index: object) -> int:
    """A key that is no plain integer, as text; gives what stands for it. A user's own kind of number is not asked."""
    if type(index).__module__ == "numpy" and hasattr(type(index), "bit_count"):  # one of numpy's whole numbers
        return int(index)  # type: ignore[call-overload, no-any-return]
    flight.words[_POSITION] += 1  # what else would tell one sample from the next
    if index is not None:
        flight.write_text(at.W_KEY_LENGTH, at.KEY_AT, at.KEY_SIZE, key_text(index))
    return at.NONE


def key_text(index: object) -> str:
    """As much of it as one line bears."""
    kind = type(index)
    if kind is tuple:
        parts = [key_text(part) for part in index[:KEYED]]  # type: ignore[index]  # it is a tuple
        rest = len(index) - KEYED  # type: ignore[arg-type]
        return f"({', '.join(parts)}{f', … {rest:,} more' if rest > 0 else ''})"
    if kind in (str, bytes):
        return repr(index[:SHORT])  # type: ignore[index]  # one of these two
    return repr(index) if kind in (float, bool) or (kind is int and index < LARGE) else kind.__name__  # type: ignore[operator]


class Fetching:
    """The batch that this process fetches, and how its samples are timed."""

    __slots__ = ("_asks", "_batches", "_fetcher", "_kind", "_takes", "_timed", "in_worker")

    def __init__(self) -> None:
        self._timed, self.in_worker = True, False
        self._batches = 0
        self._fetcher: Any = None
        self._kind: type | None = None
        self._takes = self._asks = False  # whether datasets of that kind take whole batches, or what they hold may

    def begin_worker(self) -> None:
        self.in_worker, self._batches, self._timed = True, 0, True

    def quick(self, fetcher: Any, index: Any) -> int:
        """So many batches may come now of which only the samples in work are noted."""
        plain = fetcher.auto_collation and type(index) is list and not self._timed and self._batches > 32
        watched = flight.state[flight.WATCHED] or flight.words[at.W_KEY_LENGTH]
        return 0 if watched or not plain or self._draws_batches(fetcher.dataset) else QUICK

    def begin(self, fetcher: Any, index: Any, skipped: int) -> Any:
        """Note the batch, which stands for those that were not timed as well; give what the fetcher shall iterate."""
        w, batches = flight.words, self._batches
        if self.in_worker:
            flight.stand_for(skipped + 1, w[at.W_SINCE + at.IDLE])
            self._begin_in_worker(fetcher)
        self._batches = batches = batches + 1
        w[_POSITION] = at.NONE
        w[_FETCHING] = 1
        w[_SINCE] = monotonic_ns()
        if w[at.W_KEY_LENGTH]:
            w[at.W_KEY_LENGTH] = 0
        if not fetcher.auto_collation or type(index) not in _BATCHES:  # the dataset gets the index itself
            key = None if _is_stream(fetcher) else index  # fastai counts the batches of its streams
            w[_SAMPLE] = key if type(key) is int and key < LARGE else note_key(key)
            if key is None:  # the next item of a stream: nothing tells it from the one before
                w[_POSITION] = at.NONE
            return index
        if self._draws_batches(fetcher.dataset):
            w[_SAMPLE] = at.NONE
            return index
        return TimedIndices(index) if self._timed else NotedIndices(index)

    def _begin_in_worker(self, fetcher: Any) -> None:
        flight.enter(at.FETCH)
        if flight.words[at.W_WORKER] < 0:
            flight.words[at.W_WORKER] = _worker_number()
        if not self._batches:
            _expect(fetcher)
        if fetcher is not self._fetcher or flight.state[flight.WATCHED]:
            self._fetcher = fetcher
            dispatch.emit("fetch_began", fetcher)

    def finish(self, index: Any, batch: Any) -> None:
        """The batch is there: what is noted of its samples no longer counts."""
        w, batches = flight.words, self._batches
        w[_FETCHING] = 0
        if self.in_worker and batch is not None and (batches <= 8 or not batches & 3):
            w[at.W_BATCH_BYTES] = _total_bytes(batch)
        if self.in_worker and type(index) not in _BATCHES:  # without a batch size: one fetch is one sample
            flight.count(at.SAMPLE_KIND, monotonic_ns() - w[_SINCE], 1)
        if self._timed:
            if batches % RETIME == 1 or batches < 32:
                self._timed = slow_samples()
        else:
            if type(index) in _BATCHES and index:
                flight.count(at.SAMPLE_KIND, (monotonic_ns() - w[_SINCE]) // len(index), len(index))
            self._timed = not batches % RETIME
        if self.in_worker:
            first = index[0] if type(index) in _BATCHES and index else index
            known = first if type(first) is int and first < LARGE else at.NONE
            samples = len(index) if type(index) in _BATCHES else 1
            flight.fetched(w[at.W_SINCE + at.FETCH], known, samples, batch is None)
            if flight.state[flight.WATCHED]:
                dispatch.emit("fetch_ended")
            flight.enter(at.IDLE)

    def _draws_batches(self, dataset: object) -> bool:
        """It takes the whole batch of indices, so it must get the very object. Looked up, not asked: a dataset's
        `__getattr__` is the user's, and hands on to what it holds."""
        kind, objects = type(dataset), dispatch.module("objects")
        if kind is not self._kind:
            self._kind, self._takes = kind, _defines(kind, "__getitems__") and not _is_subset(kind)
            self._asks = _defines(kind, "__getattr__")
        if self._takes or "__getitems__" in objects.Own(dataset):
            return True
        held = (objects.instance_dict(dataset) or {}).values() if self._asks else ()
        return any(_defines(type(value), "__getitems__") for value in islice(held, 16))


def _defines(kind: type, name: str) -> bool:
    return dispatch.module("objects").in_class(kind, name) is not None


def _is_stream(fetcher: Any) -> bool:
    """Whatever index it is given, it takes the next item."""
    return type(fetcher).__name__ == "_IterableDatasetFetcher"


def _is_subset(kind: type) -> bool:
    """torch's own Subset (random_split) goes through the indices one by one, as the fetcher would."""
    return (kind.__module__, kind.__name__) == ("torch.utils.data.dataset", "Subset")


def slow_samples() -> bool:
    """The median of the samples so far is worth a clock reading each."""
    base = at.HISTOGRAMS + at.SAMPLE_KIND * at.KIND_WORDS
    counts = flight.words[base : base + at.BUCKETS]
    return sum(counts[: TIMED_ABOVE.bit_length()]) * 2 < sum(counts)


def _expect(fetcher: Any) -> None:
    from ..probes.pace import batch_bytes

    batch_bytes.expect(fetcher)


def _total_bytes(batch: Any) -> int:
    from .. import tensors

    return int(tensors.total_bytes(batch))


def _worker_number() -> int:
    import torch.utils.data

    info = torch.utils.data.get_worker_info()
    return at.NONE if info is None else info.id


fetching = Fetching()


def install(module: Any) -> None:
    """`module` is torch.utils.data._utils.fetch."""
    _wrap(module._MapDatasetFetcher, "fetch")
    _wrap(module._IterableDatasetFetcher, "iterable fetch")


def _wrap(fetcher_class: Any, name: str) -> None:
    original, clock = fetcher_class.fetch, monotonic_ns
    fetch_began, idle_began = at.W_SINCE + at.FETCH, at.W_SINCE + at.IDLE
    words, left, skipped, in_worker = flight.words, 0, 0, False

    def take(new: memoryview[int]) -> None:
        nonlocal words, left, skipped
        words, left, skipped = new, 0, 0

    flight.follow(take)
    fetcher_class._unstuck_quick = False

    @wraps(original)
    def fetch(self: Any, possibly_batched_index: Any) -> Any:
        """One frame of ours: it is seen in the traceback of a sample that fails."""
        nonlocal left
        quick = left and self._unstuck_quick and type(possibly_batched_index) is list
        if quick:
            left -= 1
            words[_SINCE] = now = clock()
            if in_worker:
                words[fetch_began] = now
            words[_POSITION] = at.NONE
            words[_FETCHING] = 1
            given: Any = NotedIndices(possibly_batched_index)
        else:
            given = begin(self, possibly_batched_index)
        batch = None
        try:
            batch = original(self, given)
        except BaseException as error:
            failed(possibly_batched_index, error)
            raise
        finally:
            if quick:
                words[_FETCHING] = 0
                if in_worker:
                    words[idle_began] = clock()
            else:
                finish(self, possibly_batched_index, batch)
        return batch

    def begin(fetcher: Any, index: Any) -> Any:
        try:
            return fetching.begin(fetcher, index, skipped - left)
        except Exception as fault:
            guard.off(name, fault)
            return index

    def finish(fetcher: Any, index: Any, batch: Any) -> None:
        nonlocal left, skipped, in_worker
        try:
            fetching.finish(index, batch)
            left = skipped = fetching.quick(fetcher, index)
            in_worker, fetcher._unstuck_quick = fetching.in_worker, left > 0
        except Exception as fault:
            guard.off(name, fault)

    def failed(index: Any, error: BaseException) -> None:
        try:
            if type(error) not in (StopIteration, KeyboardInterrupt):  # the end of an iterable dataset; Ctrl-C
                dispatch.emit("sample_failed", index, error)
        except Exception as fault:
            guard.off(name, fault)

    def remove() -> None:
        fetcher_class.fetch = original
        del fetcher_class._unstuck_quick

    fetcher_class.fetch = fetch
    guard.on(name, remove)


def install_worker(module: Any) -> None:
    """`module` is torch.utils.data._utils.signal_handling: torch calls this first in each worker."""
    original = module._set_worker_signal_handlers

    @wraps(original)
    def _set_worker_signal_handlers(*arguments: Any, **options: Any) -> Any:
        try:
            signals.lower_crash_handler()
        except Exception as fault:
            guard.off("worker", fault)
        answer = original(*arguments, **options)
        try:
            worker_began()
        except Exception as fault:
            guard.off("worker", fault)
        return answer

    module._set_worker_signal_handlers = _set_worker_signal_handlers
    guard.on("worker", lambda: setattr(module, "_set_worker_signal_handlers", original))
    _wrap_check(module)


def worker_began() -> None:
    fetching.begin_worker()
    flight.words[at.W_ROLE] = at.ROLES.index("worker")
    signals.arm_crash_handler()
    _hear_errors(sys.modules["torch._utils"].ExceptionWrapper)
    dispatch.emit("worker_began")


def _wrap_check(module: Any) -> None:
    """torch's handler of SIGCHLD asks this in main, and it raises in the middle of whatever main is doing."""
    original = module._error_if_any_worker_fails

    @wraps(original)
    def _error_if_any_worker_fails() -> Any:
        try:
            return original()
        except BaseException as error:
            try:
                dispatch.emit("workers_failed", error)
            except Exception as fault:
                guard.off("worker ends", fault)
            raise

    module._error_if_any_worker_fails = _error_if_any_worker_fails
    guard.on("worker ends", lambda: setattr(module, "_error_if_any_worker_fails", original))


def _hear_errors(wrapper: Any) -> None:
    """What a worker hands over to main as an error, if it is not one of a sample's."""
    original = wrapper.__init__

    @wraps(original)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        try:
            dispatch.emit("error_handed_over", sys.exc_info()[1])
        except Exception as fault:
            guard.off("worker errors", fault)
        original(self, *arguments, **options)

    wrapper.__init__ = __init__
    guard.on("worker errors", lambda: setattr(wrapper, "__init__", original))
