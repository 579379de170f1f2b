"""Seam: fetching a batch's samples, in a worker or in main: which sample is in work, and since when.

The fetcher gets its list of indices as a list that notes the position while it is iterated. Samples of 50 µs
and more are timed one by one; quicker ones as the mean of their batch, so that noting stays far below them.
"""

from __future__ import annotations

import sys
from functools import wraps
from time import monotonic_ns

from .. import attempts, flight, guard, signals
from .. import layout as at
from ..probes.data import dataset_state, shared_handles
from ..probes.death import failures
from ..probes.pace import batch_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Literal

TIMED_ABOVE = 50_000  # nanoseconds a sample
RETIME = 64  # batches
_timed = True
_batches = 0
_kinds: dict[type, bool | Literal["asks"]] = {}  # types of data sets: whether they take whole batches
_keyed = 0  # the text field holds a key
_in_worker = False


class NotedIndices(list):  # type: ignore[type-arg]  # its base stays plain at run time
    """Indices of one batch; iterating it says which one is in work."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        w = flight.words
        for index in list.__iter__(self):
            try:
                w[at_W_SAMPLE] = index
            except Exception:  # keys that are not integers
                note_key(index)
            yield index
        w[at_W_POSITION] = at_COLLATING


class TimedIndices(list):  # type: ignore[type-arg]  # as above
    """The same for slower samples, each with its own time."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        w = flight.words
        for index in list.__iter__(self):
            try:
                w[at_W_SAMPLE] = index
            except Exception:
                note_key(index)
            w[at_W_SAMPLE_SINCE] = began = monotonic_ns()
            yield index
            flight.count(at_SAMPLE_KIND, monotonic_ns() - began)
        w[at_W_POSITION] = at_COLLATING
        w[at_W_SAMPLE_SINCE] = monotonic_ns()


def note_key(index: object) -> None:
    """A key that is no integer, as text. It may hold objects of the user's, whose `repr` may fail."""
    global _keyed
    w = flight.words
    w[at.W_SAMPLE] = at.NONE
    w[at.W_POSITION] += 1  # what else would tell one sample from the next
    if index is None:
        return
    _keyed = 1
    try:
        text = repr(index) if type(index) in _PLAIN else type(index).__name__
        flight.write_text(at.W_KEY_LENGTH, at.KEY_AT, at.KEY_SIZE, text)
    except Exception:
        flight.words[at.W_KEY_LENGTH] = 0


def install(module: Any) -> None:
    """`module` is torch.utils.data._utils.fetch."""
    _wrap(module._MapDatasetFetcher, "fetch")
    _wrap(module._IterableDatasetFetcher, "iterable fetch")


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


def _wrap_check(module: Any) -> None:
    """torch's handler of SIGCHLD asks this in main, and it raises in the middle of whatever main is doing."""
    original = module._error_if_any_worker_fails

    @wraps(original)
    def _error_if_any_worker_fails() -> Any:
        try:
            return original()
        except BaseException as error:
            try:
                failures.workers_failed(error)
            except Exception as fault:
                guard.off("worker ends", fault)
            raise

    module._error_if_any_worker_fails = _error_if_any_worker_fails
    guard.on("worker ends", lambda: setattr(module, "_error_if_any_worker_fails", original))


def worker_began() -> None:
    global _in_worker
    _in_worker = True
    flight.words[at.W_ROLE] = at.ROLES.index("worker")
    signals.arm_crash_handler()
    _hear_errors(sys.modules["torch._utils"].ExceptionWrapper)
    shared_handles.followed.clear()  # main's own, as it was at the fork
    attempts.locks_files = False
    if flight.words[at.W_FORKED]:
        _handles(shared_handles.follow)


def _hear_errors(wrapper: Any) -> None:
    """What a worker hands over to main as an error, if it is not one of a sample's."""
    original = wrapper.__init__

    @wraps(original)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        try:
            failures.handed_over(sys.exc_info()[1])
        except Exception as fault:
            guard.off("worker errors", fault)
        original(self, *arguments, **options)

    wrapper.__init__ = __init__
    guard.on("worker errors", lambda: setattr(wrapper, "__init__", original))


def _wrap(fetcher_class: Any, name: str) -> None:
    original = fetcher_class.fetch

    @wraps(original)
    def fetch(self: Any, possibly_batched_index: Any) -> Any:
        given = possibly_batched_index
        try:
            given = begin(self, possibly_batched_index)
        except Exception as fault:
            guard.off(name, fault)
        batch = None
        try:
            batch = original(self, given)
        except BaseException as error:
            try:
                failed(possibly_batched_index, error)
            except Exception as fault:
                guard.off(name, fault)
            raise
        finally:
            try:
                finish(possibly_batched_index, batch)
            except Exception as fault:
                guard.off(name, fault)
        return batch

    fetcher_class.fetch = fetch
    guard.on(name, lambda: setattr(fetcher_class, "fetch", original))


def begin(fetcher: Any, index: Any) -> Any:
    """Note the batch; give back what the fetcher shall iterate."""
    global _batches, _keyed
    w = flight.words
    if _in_worker:
        flight.enter(at.FETCH)
        if w[at.W_WORKER] < 0:
            w[at.W_WORKER] = _worker_number()
        dataset_state.in_worker(fetcher)
        if not _batches:
            batch_bytes.expect(fetcher)
        if shared_handles.followed:
            _handles(shared_handles.works, fetcher)
    _batches += 1
    w[at_W_POSITION] = at_NONE
    w[at_W_FETCHING] = 1
    if _timed or _in_worker or not _batches & 3 or _batches < 32:
        w[at_W_SAMPLE_SINCE] = monotonic_ns()
    if _keyed:
        w[at.W_KEY_LENGTH] = _keyed = 0
    if not fetcher.auto_collation or type(index) not in _BATCHES:  # the data set gets the index itself
        try:
            w[at_W_SAMPLE] = index
        except Exception:
            note_key(index)
        return index
    if _draws_batches(fetcher.dataset):
        w[at_W_SAMPLE] = at_NONE
        return index
    return TimedIndices(index) if _timed else NotedIndices(index)


def _draws_batches(dataset: object) -> bool:
    """It takes the whole batch of indices, so it must get the very object; asked as torch asks."""
    kind = type(dataset)
    known = _kinds.get(kind)
    if known is None:
        takes_batches = hasattr(kind, "__getitems__") and not _is_subset(kind)
        known = _kinds[kind] = "asks" if hasattr(kind, "__getattr__") else takes_batches
    if known == "asks":
        return bool(getattr(dataset, "__getitems__", None))
    return known or "__getitems__" in getattr(dataset, "__dict__", ())


def _is_subset(kind: type) -> bool:
    """torch's own Subset (random_split) goes through the indices one by one, as the fetcher would."""
    return (kind.__module__, kind.__name__) == ("torch.utils.data.dataset", "Subset")


def failed(index: Any, error: BaseException) -> None:
    if not isinstance(error, (StopIteration, KeyboardInterrupt)):  # the end of an iterable data set; Ctrl-C
        failures.sample_failed(index, error)


def finish(index: Any, batch: Any) -> None:
    """The batch is there: what is noted of its samples no longer counts."""
    w = flight.words
    w[at_W_FETCHING] = 0
    if _in_worker and batch is not None and (_batches <= 8 or not _batches & 31):
        w[at.W_BATCH_BYTES] = batch_bytes.tensor_bytes(batch)
    if _timed:
        retime()
    elif not _batches & 3 or _batches < 32:
        measured(w, index)
    if _in_worker:
        if shared_handles.followed:
            _handles(shared_handles.rests)
        flight.enter(at.IDLE)


def _handles(action: Callable[..., object], *arguments: Any) -> None:
    try:
        action(*arguments)
    except Exception as fault:
        shared_handles.followed.clear()
        guard.off("handles", fault)


def measured(w: memoryview[int], index: Any) -> None:
    """Count a batch's mean for each of its samples; now and then time them one by one again."""
    global _timed
    if type(index) in _BATCHES and index:
        flight.count(at_SAMPLE_KIND, (monotonic_ns() - w[at_W_SAMPLE_SINCE]) // len(index), len(index))
    if not _batches % RETIME:
        _timed = True


def retime() -> None:
    """Decide whether the samples are slow enough to be timed one by one."""
    global _timed
    if _batches % RETIME == 1 or _batches < 32:
        _timed = slow_samples()


def slow_samples() -> bool:
    """The median of the samples so far is worth a clock reading each."""
    base = at.SAMPLE_KIND * at.KIND_WORDS
    counts = flight._counts[base : base + at.BUCKETS]
    return sum(counts[: TIMED_ABOVE.bit_length()]) * 2 < sum(counts)


def _worker_number() -> int:
    import torch.utils.data

    info = torch.utils.data.get_worker_info()
    return at.NONE if info is None else info.id


_BATCHES = (list, tuple)
_PLAIN = frozenset((str, bytes, tuple, float, bool))
at_W_POSITION, at_W_SAMPLE, at_W_SAMPLE_SINCE = at.W_POSITION, at.W_SAMPLE, at.W_SAMPLE_SINCE
at_COLLATING, at_SAMPLE_KIND, at_NONE = at.COLLATING, at.SAMPLE_KIND, at.NONE
at_W_FETCHING = at.W_FETCHING
