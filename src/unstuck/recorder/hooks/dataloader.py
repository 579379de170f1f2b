"""Seam: every batch that a DataLoader hands out, in the process that draws it. Waiting for it is phase `data`.

The path of an ordinary batch is written out in one closure: two readings of the clock, two stores, four counters.
Everything else happens in sampled steps, at the first batch of a pass, and at one batch in thirty-two.
"""

from __future__ import annotations

import os
from functools import wraps
from itertools import count
from time import monotonic_ns

from .. import dispatch, flight, guard, stepping
from .. import layout as at
from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..loading import Loading

OPENED, DRAWN = "_unstuck_opened", "_unstuck_drawn"
"""Of an iterator: the Loading of its loader; the same, once a batch has come."""
INDICES = "_unstuck_indices"
SCANS = bool(os.environ.get("UNSTUCK_SCAN"))  # asked once: below compiled code asking would be compiled too
FIRST = 8  # batches of a pass that are looked at in any case; then one in thirty-two, and those of sampled steps


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
    seam, request, data, between = at.W_SEAM, at.W_REQUEST, at.DATA, at.BETWEEN
    full, watched = flight.FULL, flight.WATCHED

    @wraps(original)
    def __next__(self: Any) -> Any:
        began = clock()
        flight.words[seam] = began << 3 | data
        known = self.__dict__.get(DRAWN)
        if known is None or state[full] or state[watched]:
            return closely(self, began)
        try:
            batch = original(self)
        except BaseException as error:
            guard.attempt(name, no_batch, self, error)
            raise
        now = clock()
        flight.words[seam] = now << 3 | between
        took = now - began
        known.until = now
        known.waited += took
        known.drawn += 1
        if took > known.longest:
            known.longest = took
        number = self._num_yielded
        if number < FIRST or not number & 31 or flight.words[request]:
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

    kind.__next__ = __next__
    guard.on(name, lambda: setattr(kind, "__next__", original))


def asked(iterator: Any, began: int) -> None:
    if flight.state[flight.FULL]:
        flight.account(began, at.DATA)
    if flight.state[flight.WATCHED]:
        dispatch.emit("batch_asked", iterator)


def came(iterator: Any, began: int, batch: Any) -> None:
    """A batch came. The first of a pass is made while nothing runs beside it: that wait is a cost of beginning."""
    now = monotonic_ns()
    flight.words[at.W_SEAM] = now << 3 | at.BETWEEN
    if flight.state[flight.FULL]:
        flight.account(now, at.BETWEEN)
        flight.words[at.W_BATCH] = iterator._num_yielded
    own = iterator.__dict__
    known, took = own.get(DRAWN), now - began
    if known is not None:
        known.waited += took
        known.drawn += 1
        known.longest = max(known.longest, took)
    else:
        known = own[DRAWN] = own.get(OPENED)
        if known is None:
            return
        if known.since:
            known.starts += 1
            known.starting += took + known.opened
        else:
            known.since, known.begun = now, took
    known.until = now
    if flight.state[flight.WATCHED]:
        dispatch.emit("batch_fetched", iterator)
    look(iterator, known, batch)


def look(iterator: Any, known: Loading, batch: Any) -> None:
    """A batch that is looked at, or one in thirty-two; what the supervisor asks for is answered here too."""
    number = iterator._num_yielded
    dispatch.module("loading").trim(known)
    if flight.full() or number < FIRST or not number & 31:
        dispatch.emit("batch_looked_at", known, iterator, batch)
    elif flight.state[flight.FULL]:
        dispatch.ask("passes", "note_size", batch)
    if known.waited + known.starting > known.tell_at:
        dispatch.emit("waited_much", known)
    if flight.words[at.W_REQUEST]:
        stepping.answer()


def no_batch(iterator: Any, error: BaseException) -> None:
    """The pass is over, or a batch could not be had."""
    flight.enter(at.BETWEEN)
    known = iterator.__dict__.get(OPENED)
    if type(error) is StopIteration:
        if known is not None:
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
            own = self.__dict__
            if type(self).__module__ == torchs and own.get("_sampler_iter") is not None:
                kept: dict[int, Any] = {}
                own[INDICES] = kept
                own["_sampler_iter"] = map(kept.setdefault, count(), own["_sampler_iter"])
        except Exception as fault:
            guard.off("indices", fault)

    setattr(kind, name, drawing)
    guard.on(f"indices {name}", lambda: setattr(kind, name, original))


def _wrap_opening(kind: Any, name: str, probe: str) -> None:
    """A pass begins when its iterator is made, or begun again by workers that live on. All ways to one lead here."""
    original = getattr(kind, name)

    @wraps(original)
    def opening(self: Any, loader: Any, *arguments: Any, **options: Any) -> None:
        first = options.get("first_iter", arguments[0] if arguments else False)
        began = monotonic_ns()
        processes.pickles.begin()
        original(self, loader, *arguments, **options)
        if name == "_reset" and first:  # its constructor is still at work
            return
        try:
            opened(self, loader, monotonic_ns() - began)
        except Exception as fault:
            guard.off(probe, fault)

    setattr(kind, name, opening)
    guard.on(probe, lambda: setattr(kind, name, original))


def opened(iterator: Any, loader: Any, took: int) -> None:
    dispatch.begin()
    loading = dispatch.module("loading")
    if SCANS:
        from ..scan import takeover

        takeover.opened(loader)
    flight.pass_began()
    site = dispatch.module("user_code").call_site()
    known, _ = loading.of(loader, site)
    own = iterator.__dict__
    dispatch.emit("pass_left", known)
    known.opened, known.indices, known.oldest = took, own.setdefault(INDICES, {}), 0
    dispatch.emit("pass_began", known, iterator)
    known.site, known.steps, known.ended = site, flight.steps(), False
    known.passes += 1
    own[OPENED], own[DRAWN] = known, None
    loading.opened(known, iterator)
