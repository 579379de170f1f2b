"""A second loader over the same data with other settings; nothing of the first one is used up or changed."""

from __future__ import annotations

import itertools

from ..takeover.untouched import own_copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .worker_settings import Settings


def clone(loader: Any, settings: Settings, *, timeout: float | None = None, skip: int = 0) -> Any:
    """A loader like `loader`, with `settings`; `timeout` is for one that has none, and the first pass leaves out its
    first `skip` batches."""
    from torch.utils.data import DataLoader

    arguments = {**_kept(loader), **settings.arguments()}
    for name in ("sampler", "batch_sampler"):
        if skip and name in arguments:
            arguments[name] = Later(arguments[name], skip * (loader.batch_size or 1))
    arguments["timeout"] = (loader.timeout or timeout or 0) if settings.num_workers else 0
    if settings.num_workers and loader.multiprocessing_context is not None:
        arguments["multiprocessing_context"] = loader.multiprocessing_context
    if settings.threads > 1:
        arguments["worker_init_fn"] = Threads(settings.threads, loader.worker_init_fn)
    # A class with an __init__ of its own takes arguments nobody knows; what it loads is the same.
    kind = type(loader) if type(loader).__init__ is DataLoader.__init__ else DataLoader
    return kind(**arguments)


def _kept(loader: Any) -> dict[str, Any]:
    """The arguments that decide what a loader gives, read from its public attributes."""
    from torch.utils.data import IterableDataset

    copies: dict[int, Any] = {}
    kept = {
        "dataset": loader.dataset,
        "collate_fn": loader.collate_fn,
        "worker_init_fn": loader.worker_init_fn,
        "generator": own_copy(loader.generator, copies),
    }
    if isinstance(loader.dataset, IterableDataset):
        kept.update(batch_size=loader.batch_size, drop_last=loader.drop_last)
    elif loader.batch_size is not None:
        kept.update(batch_size=loader.batch_size, drop_last=loader.drop_last, sampler=own_copy(loader.sampler, copies))
    elif loader.batch_sampler is not None:
        kept["batch_sampler"] = own_copy(loader.batch_sampler, copies)
    else:
        kept.update(batch_size=None, sampler=own_copy(loader.sampler, copies))
    if getattr(loader, "pin_memory_device", ""):
        kept["pin_memory_device"] = loader.pin_memory_device
    if not getattr(loader, "in_order", True):
        kept["in_order"] = False
    return kept


class Later:
    """A sampler that begins further on, once: what it leaves out is drawn and not read."""

    def __init__(self, sampler: Any, skip: int) -> None:
        self.sampler, self.skip = sampler, skip

    def __iter__(self) -> Any:
        skip, self.skip = self.skip, 0
        return itertools.islice(iter(self.sampler), skip, None)

    def __len__(self) -> int:
        return len(self.sampler)


class Threads:
    """A worker_init_fn that sets the threads of a worker, then calls the one that was there. Spawned workers load it
    by its name."""

    def __init__(self, count: int, then: Any) -> None:
        self.count, self.then = count, then

    def __call__(self, worker: int) -> None:
        import torch

        torch.set_num_threads(self.count)
        if self.then is not None:
            self.then(worker)
