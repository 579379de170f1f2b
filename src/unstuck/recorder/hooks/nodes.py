"""Seam: torchdata's nodes. The batches that their Loader hands out, and the items that worker processes map."""

from __future__ import annotations

import sys
from functools import wraps
from time import monotonic_ns

from .. import flight, guard
from .. import layout as at
from . import dataloader, fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def install(module: Any) -> None:
    """`module` is torchdata.nodes.loader. Its iterator counts its batches as torch's own does."""
    dataloader._wrap_next(module.LoaderIterator, "nodes loader")
    kind = module.Loader
    original = kind.__iter__

    @wraps(original)
    def __iter__(self: Any) -> Any:
        began = monotonic_ns()
        iterator = original(self)
        guard.attempt("nodes loader passes", dataloader.opened, iterator, self, monotonic_ns() - began)
        return iterator

    kind.__iter__ = __iter__
    guard.on("nodes loader passes", lambda: setattr(kind, "__iter__", original))


def install_workers(module: Any) -> None:
    """`module` is torchdata.nodes._apply_udf: what each worker of a ParallelMapper runs, a process or a thread."""
    original = module._apply_udf

    @wraps(original)
    def _apply_udf(worker_id: int, in_q: Any, out_q: Any, udf: Any, stop_event: Any) -> Any:
        try:
            udf = noted(worker_id, udf)
        except Exception as fault:
            guard.off("nodes workers", fault)
        return original(worker_id, in_q, out_q, udf, stop_event)

    module._apply_udf = _apply_udf
    guard.on("nodes workers", lambda: setattr(module, "_apply_udf", original))


def noted(number: int, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same function, noting which item is in work; in a thread of the training it is left as it is."""
    threading = sys.modules["threading"]
    if threading.current_thread() is not threading.main_thread():
        return function
    words = flight.words
    words[at.W_ROLE], words[at.W_WORKER] = at.ROLES.index("worker"), number
    flight.enter(at.IDLE)

    def mapped(item: Any) -> Any:
        guard.attempt("nodes workers", begin, item)
        try:
            return function(item)
        finally:
            guard.attempt("nodes workers", finish)

    return mapped


def begin(item: Any) -> None:
    words = flight.words
    flight.enter(at.FETCH)
    words[at.W_POSITION] = at.NONE
    words[at.W_KEY_LENGTH] = 0
    words[at.W_SAMPLE] = item if type(item) is int and item < fetch.LARGE else fetch.note_key(item)
    words[at.W_SAMPLE_SINCE] = monotonic_ns()
    words[at.W_FETCHING] = 1


def finish() -> None:
    words = flight.words
    words[at.W_FETCHING] = 0
    flight.count(at.SAMPLE_KIND, monotonic_ns() - words[at.W_SAMPLE_SINCE])
    flight.enter(at.IDLE)
