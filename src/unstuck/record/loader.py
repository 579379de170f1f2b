"""Seam: every batch a DataLoader hands out, in main. Waiting for it is phase `data`, all else is the user's."""

from __future__ import annotations

import os
import sys
from functools import wraps

from . import facts, flight, probes
from . import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

_told: set[tuple[int, int]] = set()
_places: dict[tuple[int, int], list[int]] = {}


def install(module: Any) -> None:
    """`module` is torch.utils.data.dataloader."""
    _wrap_next(module._BaseDataLoaderIter, "loader")
    _wrap_iter(module.DataLoader, "loader passes")


def install_stateful(module: Any) -> None:
    """`module` is torchdata.stateful_dataloader.stateful_dataloader, whose iterators have their own `__next__`."""
    _wrap_next(module._StatefulBaseDataLoaderIter, "stateful loader")


def _wrap_next(iterator_class: Any, name: str) -> None:
    original = iterator_class.__next__

    @wraps(original)
    def __next__(self: Any) -> Any:
        try:
            begin(self)
        except Exception as fault:
            probes.off(name, fault)
        try:
            batch = original(self)
        except BaseException as error:
            try:
                ended(self, error)
            except Exception as fault:
                probes.off(name, fault)
            raise
        try:
            finish(self)
        except Exception as fault:
            probes.off(name, fault)
        return batch

    iterator_class.__next__ = __next__
    probes.on(name, lambda: setattr(iterator_class, "__next__", original))


begin = flight.batch_asked
finish = flight.batch_came


def ended(iterator: Any, error: BaseException) -> None:
    """The pass is over, or a batch could not be had: then what became of the workers is worth a line."""
    flight.enter(at.BETWEEN)
    if isinstance(error, StopIteration):
        return
    workers = iterator.__dict__.get("_workers") or ()
    exits = [{"worker": n, "pid": w.pid, "exitcode": w.exitcode} for n, w in enumerate(workers)]
    facts.write("batch-failed", {"error": type(error).__name__, "message": str(error)[:2000], "workers": exits})


def _wrap_iter(loader_class: Any, name: str) -> None:
    original = loader_class.__iter__

    @wraps(original)
    def __iter__(self: Any) -> Any:
        iterator = original(self)
        try:
            opened(self, iterator)
        except Exception as fault:
            probes.off(name, fault)
        return iterator

    loader_class.__iter__ = __iter__
    probes.on(name, lambda: setattr(loader_class, "__iter__", original))


def opened(loader: Any, iterator: Any) -> None:
    """A pass begins. Settings are written once a loader, pids whenever workers are new."""
    flight.pass_began()
    key = (os.getpid(), id(loader))
    if key not in _told:
        _told.add(key)
        facts.write("loader", {"loader": id(loader), "site": call_site(), **settings(loader)})
    pids = [worker.pid for worker in iterator.__dict__.get("_workers") or ()]
    if pids and _places.get(key) != pids:
        _places[key] = pids
        facts.write("workers", {"loader": id(loader), "pids": pids})


def settings(loader: Any) -> dict[str, object]:
    """Plain settings of a loader; reads instance attributes only, runs nothing of the user's."""
    own = loader.__dict__
    plain = ("batch_size", "num_workers", "drop_last", "pin_memory", "prefetch_factor", "timeout", "persistent_workers")
    context = own.get("_DataLoader__multiprocessing_context")
    return {
        **{name: own[name] for name in plain if name in own},
        "persistent_workers": own.get("persistent_workers"),
        "dataset": type(own.get("dataset")).__qualname__,
        "sampler": type(own.get("sampler")).__qualname__,
        "start_method": getattr(context, "_name", None),
    }


def call_site() -> list[str | int] | None:
    """File, line and function of the code that asked, above torch and us."""
    frame: FrameType | None = sys._getframe(1)
    here = os.path.dirname(__file__)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(here) and "/torch/utils/data/" not in file:
            return [
                os.path.abspath(file),
                frame.f_lineno,
                frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name,
            ]
        frame = frame.f_back
    return None
