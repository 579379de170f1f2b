"""Seam: every batch that a DataLoader hands out, in the process that draws it. Waiting for it is phase `data`.

The path of an ordinary batch is written out in one closure: two stores while the hooks rest; else two readings of the
clock as well, and three counters. Everything else happens in sampled steps, at the first batch of a pass, and at one
batch in thirty-two.
"""

from __future__ import annotations

from functools import wraps
from itertools import count
from time import monotonic_ns

from .. import dispatch, flight, guard, resting, stepping
from .. import layout as at
from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..loading import Loading

OPENED, DRAWN = "_unstuck_opened", "_unstuck_drawn"
"""Of an iterator: the Loading of its loader; the same, once a batch has come. Set and read as attributes: asking
for the `__dict__` would make one, and all attributes of the iterator slower."""
INDICES = "_unstuck_indices"
HEALING = ".heal.loader.healing_iterators"  # iterators of ours, which draw as torch's do
FIRST = 8  # batches of a pass that are looked at in any case; then one in thirty-two, and those of sampled steps
ANSWER_WITHIN = 20_000_000  # nanoseconds after which a batch answers what the supervisor asks for


def install(module: Any) -> None:
    """`module` is torch.utils.data.dataloader."""
    base = module._BaseDataLoaderIter
    _wrap_next(base, "loader")
    for name in ("__init__", "_reset"):
        _wrap_drawing(base, name)
    for kind in (module._SingleProcessDataLoaderIter, module._MultiProcessingDataLoaderIter):
        _wrap_opening(kind, "__init__", f"loader passes {kind.__name__}")
    _wrap_opening(module._MultiProcessingDataLoaderIter, "_reset", "loader passes begun again")


def install_stateful(module: Any) -> None:
    """`module` is torchdata.stateful_dataloader.stateful_dataloader, whose iterators have their own `__next__`."""
    _wrap_next(module._StatefulBaseDataLoaderIter, "stateful loader")
    for kind in (module._StatefulSingleProcessDataLoaderIter, module._StatefulMultiProcessingDataLoaderIter):
        _wrap_opening(kind, "__init__", f"loader passes {kind.__name__}")


def _wrap_next(kind: Any, name: str) -> None:
    original, clock, state = kind.__next__, monotonic_ns, flight.state
    data, between = at.W_SINCE + at.DATA, at.W_SINCE + at.BETWEEN
    full, watched, left, rested = flight.FULL, flight.WATCHED, flight.LEFT, at.W_RESTED
    words = flight.words
    at_rest: Any = False

    def take(new: memoryview[int]) -> None:
        nonlocal words
        words = new

    def rest(known: Loading | None) -> None:
        nonlocal at_rest
        at_rest = False if known is None else known

    flight.follow(take)
    resting.follow(rest)
    kind._unstuck_drawn = None  # of an iterator that was made before us

    @wraps(original)
    def __next__(self: Any) -> Any:
        known = self._unstuck_drawn
        if known is at_rest:
            words[rested] = -state[left]
            try:
                batch = original(self)
            except BaseException as error:
                guard.attempt(name, no_batch, self, error)
                raise
            words[rested] = state[left]
            return batch
        began = clock()
        words[data] = began
        if known is None or state[full] or state[watched]:
            return closely(self, began)
        try:
            batch = original(self)
        except BaseException as error:
            guard.attempt(name, no_batch, self, error)
            raise
        now = clock()
        words[between] = now
        took = now - began
        known.waited += took
        known.drawn += 1
        if took > known.longest:
            known.longest = took
        if self._num_yielded >= known.look_at or now > known.look_by:
            guard.attempt(name, look, self, known, batch)
        return batch

    def closely(self: Any, began: int) -> Any:
        """The same for a batch that is looked at."""
        guard.attempt(name, asked, self, began)
        try:
            batch = original(self)
        except BaseException as error:
            guard.attempt(name, no_batch, self, error)
            raise
        guard.attempt(name, came, self, began, batch)
        return batch

    def remove() -> None:
        kind.__next__ = original
        del kind._unstuck_drawn

    kind.__next__ = __next__
    guard.on(name, remove)


def asked(iterator: Any, began: int) -> None:
    if flight.state[flight.FULL]:
        flight.account(began, at.DATA)
    if flight.state[flight.WATCHED]:
        dispatch.emit("batch_asked", iterator)


def came(iterator: Any, began: int, batch: Any) -> None:
    """A batch came. The first of a pass is made while nothing runs beside it: that wait is a cost of beginning."""
    now = monotonic_ns()
    flight.words[at.W_SINCE + at.BETWEEN] = now
    if flight.state[flight.FULL]:
        flight.account(now, at.BETWEEN)
        flight.words[at.W_BATCH] = iterator._num_yielded
    known, took = _of(iterator, DRAWN), now - began
    if known is not None:
        known.waited += took
        known.drawn += 1
        known.longest = max(known.longest, took)
    else:
        known = _of(iterator, OPENED)
        if known is None:
            return
        object.__setattr__(iterator, DRAWN, known)
        if known.since:
            known.starts += 1
            known.starting += took + known.opened
        else:
            known.since, known.begun = now, took
    if flight.state[flight.WATCHED]:
        dispatch.emit("batch_fetched", iterator)
    look(iterator, known, batch)


def _between_looks(known: Loading, now: int) -> int:
    """Of many short steps fewer are looked at, as fewer are sampled."""
    many_short = known.drawn > flight.MANY_STEPS and now - known.first < known.drawn * flight.SHORT
    return flight.SELDOM if many_short else flight.OFTEN


def look(iterator: Any, known: Loading, batch: Any) -> None:
    """A batch that is looked at, or one in thirty-two; what the supervisor asks for is answered here too."""
    number, now = iterator._num_yielded, monotonic_ns()
    due = number >= known.look_at
    known.until, known.look_by = now, now + ANSWER_WITHIN
    if not flight.state[flight.LEFT]:
        flight.words[at.W_STEP] = flight.steps()
    dispatch.module("loading").trim(known)
    if due:
        known.look_at = number + 1 if number < FIRST - 1 else (number | _between_looks(known, now)) + 1
    validates = number > flight.OFTEN and flight.steps() == known.steps  # the step goes on, however many batches come
    if due or (flight.full() and not validates):
        dispatch.emit("batch_looked_at", known, iterator, batch)
    elif flight.state[flight.FULL]:
        dispatch.ask("passes", "note_size", batch)
    if known.waited + known.starting > known.tell_at:
        dispatch.emit("waited_much", known)
    if flight.words[at.W_REQUEST]:
        stepping.answer()


def no_batch(iterator: Any, error: BaseException) -> None:
    """The pass is over, or a batch could not be had."""
    resting.end()
    flight.enter(at.BETWEEN)
    known = _of(iterator, OPENED)
    if type(error) is StopIteration:
        if known is not None:
            known.until = monotonic_ns()
            dispatch.emit("pass_ended", known, iterator._num_yielded)
            if not known.ended:
                known.trained += flight.steps() - known.steps
                known.ended = True
    elif type(error) is not KeyboardInterrupt:
        dispatch.emit("batch_failed", iterator, error)


def _wrap_drawing(kind: Any, name: str) -> None:
    """Keep the indices of the last batches: when a batch turns out bad, they say which samples it was made of. The
    sampler's iterator is drawn through a dict that stores and gives back: no code of ours runs at a batch."""
    original, torchs = getattr(kind, name), kind.__module__

    @wraps(original)
    def drawing(self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        try:
            drawn_from = _of(self, "_sampler_iter")
            if type(self).__module__.endswith((torchs, HEALING)) and drawn_from is not None:
                kept: dict[int, Any] = {}
                object.__setattr__(self, INDICES, kept)
                object.__setattr__(self, "_sampler_iter", map(kept.setdefault, count(), drawn_from))
        except Exception as fault:
            guard.off("indices", fault)

    setattr(kind, name, drawing)
    guard.on(f"indices {name}", lambda: setattr(kind, name, original))


def _wrap_opening(kind: Any, name: str, probe: str) -> None:
    """A pass begins when its iterator is made, or begun again by workers that live on. All ways to one lead here."""
    original = getattr(kind, name)

    @wraps(original)
    def opening(self: Any, loader: Any, *arguments: Any, **options: Any) -> None:
        if name == "_reset" and options.get("first_iter", arguments[0] if arguments else False):
            original(self, loader, *arguments, **options)  # its constructor is still at work, and has started workers
            return
        began = monotonic_ns()
        processes.pickles.begin()
        original(self, loader, *arguments, **options)
        try:
            opened(self, loader, monotonic_ns() - began)
        except Exception as fault:
            guard.off(probe, fault)

    setattr(kind, name, opening)
    guard.on(probe, lambda: setattr(kind, name, original))


def opened(iterator: Any, loader: Any, took: int) -> None:
    dispatch.begin()
    resting.end(FIRST)
    loading = dispatch.module("loading")
    flight.pass_began()
    site = dispatch.module("user_code").call_site()
    known, _ = loading.of(loader, site)
    kept = _of(iterator, INDICES)
    dispatch.emit("pass_left", known)
    known.opened, known.indices, known.oldest, known.look_at = took, {} if kept is None else kept, 0, 1
    dispatch.emit("pass_began", known, iterator)
    known.site, known.steps, known.ended = site, flight.steps(), False
    known.passes += 1
    object.__setattr__(iterator, OPENED, known)
    object.__setattr__(iterator, DRAWN, None)
    loading.opened(known, iterator)


def _of(iterator: Any, name: str) -> Any:
    """Its attribute, or None. Nothing of the user's is run."""
    try:
        return object.__getattribute__(iterator, name)
    except AttributeError:
        return None
