"""A second loader over the same data with other settings; nothing of the first one is used up or changed."""

from __future__ import annotations

import copy
import itertools
import random
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from .settings import Settings


def clone(loader: Any, settings: Settings, *, timeout: float | None = None, skip: int = 0) -> Any:
    """A loader like `loader`, with `settings`; `timeout` replaces a timeout of none at all, and the first pass leaves
    out `skip` batches at its begin."""
    from torch.utils.data import DataLoader

    given = {**kept(loader), **settings.arguments()}
    for name in ("sampler", "batch_sampler"):
        if skip and name in given:
            given[name] = Later(given[name], skip * (loader.batch_size or 1))
    given["timeout"] = (loader.timeout or timeout or 0) if settings.num_workers else 0
    if settings.num_workers and settings.start_method is not None:
        present = loader.multiprocessing_context
        if present is not None and present.get_start_method() == settings.start_method:
            given["multiprocessing_context"] = present
    if settings.threads > 1:
        given["worker_init_fn"] = Threads(settings.threads, loader.worker_init_fn)
    # A class with an __init__ of its own takes arguments nobody knows; what it loads is the same.
    kind = type(loader) if type(loader).__init__ is DataLoader.__init__ else DataLoader
    return kind(**given)


def kept(loader: Any) -> dict[str, Any]:
    """The arguments that decide what a loader gives, read from its public attributes."""
    from torch.utils.data import IterableDataset

    made: dict[int, Any] = {}
    found = {
        "dataset": loader.dataset,
        "collate_fn": loader.collate_fn,
        "worker_init_fn": loader.worker_init_fn,
        "generator": own(loader.generator, made),
    }
    if isinstance(loader.dataset, IterableDataset):
        found.update(batch_size=loader.batch_size, drop_last=loader.drop_last)
    elif loader.batch_size is not None:
        found.update(batch_size=loader.batch_size, drop_last=loader.drop_last, sampler=own(loader.sampler, made))
    elif loader.batch_sampler is not None:
        found["batch_sampler"] = own(loader.batch_sampler, made)
    else:
        found.update(batch_size=None, sampler=own(loader.sampler, made))
    if getattr(loader, "pin_memory_device", ""):
        found["pin_memory_device"] = loader.pin_memory_device
    if not getattr(loader, "in_order", True):
        found["in_order"] = False
    return found


def own(thing: Any, made: dict[int, Any]) -> Any:
    """A copy with random generators of its own; for a sampler, of the samplers inside it too. The data stay shared.

    `made` are the copies there are already: what a loader and its sampler share, their copies share."""
    if id(thing) not in made:
        made[id(thing)] = _copied(thing, made)
    return made[id(thing)]


def _copied(thing: Any, made: dict[int, Any]) -> Any:
    import torch

    if thing is None or isinstance(thing, (int, float, str, bool, list, tuple, dict, range)):
        return thing
    if isinstance(thing, torch.Generator):
        generator = torch.Generator(device=thing.device)
        generator.set_state(thing.get_state())
        return generator
    try:
        twin = copy.copy(thing)
        inside = vars(twin)
    except Exception:
        return thing  # it cannot be copied: then the one there is
    if twin is thing:
        return thing
    for name, value in list(inside.items()):
        if isinstance(value, (torch.Generator, torch.utils.data.Sampler)):
            inside[name] = own(value, made)
        elif isinstance(value, random.Random) or type(value).__module__.startswith("numpy.random"):
            inside[name] = copy.deepcopy(value)
    return twin


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


class SameRandom:
    """Whatever is drawn inside, the script's random numbers go on afterwards as if nothing had been."""

    def __enter__(self) -> SameRandom:
        import torch

        self._python, self._torch = random.getstate(), torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
        numpy = sys.modules.get("numpy")
        self._numpy = None if numpy is None else numpy.random.get_state()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        import torch

        random.setstate(self._python)
        torch.set_rng_state(self._torch)
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
