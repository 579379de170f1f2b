"""Seam: every batch a DataLoader hands out, in main. Waiting for it is phase `data`, all else is the user's."""

from __future__ import annotations

import os
import sys
from functools import wraps
from time import monotonic_ns

from .. import facts, flight, guard, lengths, user_code
from .. import layout as at
from ..probes.data import aliases, batch_statistics, dataset_state, passes, shared_handles
from ..probes.death import failures
from ..probes.pace import data_waits, gpu_copies, pickles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LEDGER = "_unstuck_ledger"
FIRST = 8  # batches of a pass that are looked at in any case; then one in thirty-two, beside those of full steps
DRAWN = "_unstuck_drawn"
_places: dict[int, list[int]] = {}
scans: Any = None
"""Under `unstuck scan`, what waits for the training loader."""


def install(module: Any) -> None:
    """`module` is torch.utils.data.dataloader."""
    global scans
    if os.environ.get("UNSTUCK_SCAN"):
        from ..scan import takeover

        scans = takeover if takeover.wanted() else None
    _wrap_next(module._BaseDataLoaderIter, "loader")
    _wrap_index(module._BaseDataLoaderIter, "indices")
    _wrap_iter(module.DataLoader, "loader passes")
    guard.on("aliases", aliases.stop)
    guard.on("handles", shared_handles.followed.clear)


def install_stateful(module: Any) -> None:
    """`module` is torchdata.stateful_dataloader.stateful_dataloader, whose iterators have their own `__next__`."""
    _wrap_next(module._StatefulBaseDataLoaderIter, "stateful loader")


def _wrap_next(iterator_class: Any, name: str) -> None:
    original = iterator_class.__next__

    @wraps(original)
    def __next__(self: Any) -> Any:
        watched = aliases.watched
        try:
            asked = begin()
            if watched:
                _part("aliases", aliases.asked)
            if shared_handles.followed and "_workers" in self.__dict__:
                _part("handles", shared_handles.rests)
        except Exception as fault:
            asked = monotonic_ns()
            guard.off(name, fault)
        try:
            batch = original(self)
        except BaseException as error:
            try:
                ended(self, error)
            except Exception as fault:
                guard.off(name, fault)
            raise
        try:
            finish(self, asked)
            number = self._num_yielded
            ledger = self.__dict__.get(LEDGER)
            if ledger is not None:
                drew(ledger, number)
            if shared_handles.followed and "_workers" in self.__dict__:
                _part("handles", shared_handles.works)
            if watched:
                _part("aliases", aliases.fetched)
            if flight.full() or number < FIRST or not number & 31:
                looked(self, batch)
        except Exception as fault:
            guard.off(name, fault)
        return batch

    iterator_class.__next__ = __next__
    guard.on(name, lambda: setattr(iterator_class, "__next__", original))


begin = flight.batch_asked
finish = flight.batch_came
drew = data_waits.drew


def ended(iterator: Any, error: BaseException) -> None:
    """The pass is over, or a batch could not be had: then what became of the workers is worth a line."""
    flight.enter(at.BETWEEN)
    if isinstance(error, StopIteration):
        ledger = iterator.__dict__.get(LEDGER)
        if ledger is not None:
            passes.ended(ledger, iterator._num_yielded)
            _part("aliases", aliases.ended, ledger)
        return
    if not isinstance(error, KeyboardInterrupt):
        failures.batch_failed(iterator, error)


def looked(iterator: Any, batch: Any) -> None:
    """Is this batch news, and is it the data set's own memory? A fault in asking costs the answer, not the count."""
    own = iterator.__dict__
    ledger = own.get(LEDGER)
    if ledger is not None:
        _part("fingerprints", passes.look, ledger, iterator._num_yielded, batch)
        _part("aliases", aliases.came, ledger, iterator, batch, own.get(DRAWN))
        _part("data", batch_statistics.look, ledger, iterator, batch)
        _part("copies", gpu_copies.look, ledger, batch)


def _part(probe: str, action: Callable[..., object], *arguments: Any) -> None:
    if probe in guard.OFF:
        return
    try:
        action(*arguments)
    except Exception as fault:
        guard.off(probe, fault)


def _wrap_index(iterator_class: Any, name: str) -> None:
    """Keep the indices of the last batches: when a batch turns out bad, they say which samples it was made of."""
    original = iterator_class._next_index

    @wraps(original)
    def _next_index(self: Any) -> Any:
        index = None
        try:
            index = original(self)
            return index
        finally:  # also at the sampler's end: batches drawn before it are still handed out
            try:
                own = self.__dict__
                drawn = own.get(DRAWN)
                if drawn is not failures.latest or drawn is None:
                    drawn = own[DRAWN] = failures.drawing(drawn)
                if "_send_idx" in own:
                    drawn.append((own["_send_idx"], own["_rcvd_idx"] - 1, flight.steps(), index))
                else:
                    drawn.append((own["_num_yielded"], own["_num_yielded"], flight.steps(), index))
            except Exception as fault:
                guard.off(name, fault)

    iterator_class._next_index = _next_index
    guard.on(name, lambda: setattr(iterator_class, "_next_index", original))


def _wrap_iter(loader_class: Any, name: str) -> None:
    original = loader_class.__iter__
    torch = sys.modules["torch"]

    @wraps(original)
    def __iter__(self: Any) -> Any:
        asked = 0 if torch.compiler.is_dynamo_compiling() else monotonic_ns()
        pickles.begin()
        iterator = original(self)
        try:
            opened(self, iterator, asked)
        except Exception as fault:
            guard.off(name, fault)
        return iterator

    loader_class.__iter__ = __iter__
    guard.on(name, lambda: setattr(loader_class, "__iter__", original))


def opened(loader: Any, iterator: Any, asked: int) -> None:
    """A pass begins. Settings are written once a loader, pids whenever workers are new."""
    flight.pass_began()
    failures.opened(iterator)
    if scans is not None:
        scans.opened(loader)
    site = user_code.call_site()
    ledger, new = passes.ledger_of(loader, site)
    if new and (ledger.loaders < 4 or not ledger.loaders & (ledger.loaders - 1)):
        about = {"loader": id(loader), "number": ledger.number, "site": site, "length": ledger.length}
        facts.write("loader", {**about, "iterable": ledger.iterable, **settings(loader), **sources(loader)})
    iterator.__dict__[LEDGER] = ledger
    _part("aliases", aliases.ended, ledger)
    took = monotonic_ns() - asked if asked else 0
    passes.began(ledger, site, took)
    data_waits.began(ledger, took)
    pids = [worker.pid for worker in iterator.__dict__.get("_workers") or ()]
    if pids and _places.get(id(loader)) != pids:
        _places[id(loader)] = pids
        copied = {"pickled": pickles.largest, "pickling": pickles.took / 1e9}
        changed = dataset_state.workers_began(loader, ledger.number)
        started = {"loader": id(loader), "number": ledger.number, "pids": pids, "changed": changed}
        facts.write("workers", {**started, **copied})
        _part("handles", shared_handles.follow)
    elif pids and loader.__dict__.get("persistent_workers"):
        dataset_state.pass_began(loader, ledger.passes)


def sources(loader: Any) -> dict[str, object]:
    """Where the user's own parts of a loader are written, and what can be known of them without running them."""
    own = loader.__dict__
    dataset, drawn = own.get("dataset"), lengths.drawing(loader)
    samplers = [drawn, getattr(drawn, "__dict__", {}).get("sampler"), own.get("sampler")]
    drawn_at = [user_code.code_site(getattr(type(each), "__iter__", None)) for each in samplers if each is not None]
    giving = getattr(type(dataset), "__iter__" if lengths.is_iterable(loader) else "__getitem__", None)
    return {
        "samples": lengths.length(dataset),
        "sampler_site": next((site for site in drawn_at if site), None),
        "dataset_site": user_code.code_site(giving),
        "asks_worker": "get_worker_info" in dataset_state.names_read(dataset) or own.get("worker_init_fn") is not None,
        "splits": dataset_state.asks_its_worker(dataset, own.get("worker_init_fn")),
    }


def settings(loader: Any) -> dict[str, object]:
    """Plain settings of a loader; reads instance attributes only, runs nothing of the user's."""
    own = loader.__dict__
    plain = (
        "batch_size",
        "num_workers",
        "drop_last",
        "pin_memory",
        "prefetch_factor",
        "timeout",
        "persistent_workers",
        "in_order",
    )
    context = own.get("_DataLoader__multiprocessing_context")
    return {
        **{name: own[name] for name in plain if name in own},
        "persistent_workers": own.get("persistent_workers"),
        "dataset": type(own.get("dataset")).__qualname__,
        "sampler": type(own.get("sampler")).__qualname__,
        "start_method": getattr(context, "_name", None),
    }
