"""Which loader of a script is the training loader, and what a step takes besides it: seen from three seams."""

from __future__ import annotations

import os
import sys
import time
import weakref
from functools import wraps

from .step import Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

STEPS, SECONDS = 24, 3.0
"""A loader that trains is measured after so many batches, or after so long if there were a few."""
FEW = 4
LONG = 20.0
"""Seconds after which one batch is enough; and without any training, after which the busiest loader is taken."""


class Used:
    """One loader in use."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.site: list[Any] | None = loader.__dict__.get(SITE)
        self.trains = False
        self.batches = 0
        self.began = time.monotonic()
        self.gaps: list[tuple[float, float]] = []
        """Seconds and processor seconds between a batch and the next being asked for, within a pass."""
        self.waits: list[float] = []
        self.slowest = 0.0
        self.samples = 0.0
        self._iterators: weakref.WeakSet[Any] = weakref.WeakSet()
        self._handed: tuple[int, float, float] | None = None

    def iterators(self) -> list[Any]:
        return list(self._iterators)

    def asked(self, iterator: Any) -> float:
        now = time.perf_counter()
        if self._handed is not None and self._handed[0] == id(iterator):
            _wait_for_gpu()
            now = time.perf_counter()
            self.gaps.append((now - self._handed[1], time.process_time() - self._handed[2]))
        self._handed = None
        return now

    def came(self, iterator: Any, batch: Any, since: float) -> None:
        now = time.perf_counter()
        self._iterators.add(iterator)
        self.batches += 1
        self.waits.append(now - since)
        self.slowest = max(self.slowest, now - since)
        self.samples += self.loader.batch_size or _count(batch)
        self._handed = id(iterator), now, time.process_time()

    def step(self) -> Step | None:
        """None where nothing was trained, or no pass had a second batch."""
        usual = self.gaps[2:] if len(self.gaps) > 4 else self.gaps[1:] or self.gaps  # the first ones warm up
        if not self.trains or not usual:
            return None
        mean = [sum(column) / len(usual) for column in zip(*usual, strict=True)]
        waits = sorted(self.waits[1:] or self.waits)
        return Step(
            compute=mean[0],
            cpu=mean[1],
            batch=self.samples / self.batches,
            wait=waits[len(waits) // 2],
            batches=self.batches,
        )

    def enough(self) -> bool:
        passed = time.monotonic() - self.began
        if self.trains:
            known = len(self.gaps)
            return known >= STEPS or (known >= FEW and passed > SECONDS) or passed > LONG
        return main and passed > LONG and self is chosen()


SITE = "_unstuck_built_at"
ready: Callable[[Used], object] = lambda used: None  # noqa: E731
first_used: Callable[[], object] = lambda: None  # noqa: E731
faulty: Callable[[Exception], object] = lambda fault: None  # noqa: E731
main = True
"""Only the process that was started takes a loader that does not train."""
pid = os.getpid()
_used: dict[Any, Used] = {}
_built: dict[tuple[Any, ...], set[int]] = {}
"""Data sets for which a loader was built, by line."""
_latest: Used | None = None
_removers: list[Callable[[], object]] = []


def number() -> int:
    return len(_used)


def built_at(site: list[Any] | None) -> int:
    """Loaders of different data that one line has built."""
    return len(_built.get(tuple(site or ()), ()))


def chosen() -> Used | None:
    """The loader that trains with most batches; else the one with most batches."""
    return max(_used.values(), key=lambda used: (used.trains, used.batches), default=None)


def remove() -> None:
    while _removers:
        _removers.pop()()


# --- the seams -----------------------------------------------------------------------------------------------


def install(module: Any) -> None:
    """`module` is torch.utils.data.dataloader."""
    _wrap_next(module._BaseDataLoaderIter)
    _wrap_iter(module.DataLoader)
    _wrap_init(module.DataLoader)


def install_stateful(module: Any) -> None:
    """torchdata's, whose iterators have their own `__next__`."""
    _wrap_next(module._StatefulBaseDataLoaderIter)
    _wrap_iter(module.StatefulDataLoader)


def install_backward(module: Any) -> None:
    """`module` is torch.autograd."""
    original = module.backward
    torch = sys.modules["torch"]  # still importing: it has no `compiler` yet

    @wraps(original)
    def backward(*arguments: Any, **options: Any) -> Any:
        if not torch.compiler.is_dynamo_compiling():
            trained()
        return original(*arguments, **options)

    module.backward = backward
    _removers.append(lambda: setattr(module, "backward", original))


def install_optimizer(module: Any) -> None:
    """`module` is torch.optim.optimizer."""
    torch = sys.modules["torch"]

    def after(optimizer: Any, arguments: Any, options: Any) -> None:
        if not torch.compiler.is_dynamo_compiling():
            trained()

    _removers.append(module.register_optimizer_step_post_hook(after).remove)


def trained() -> None:
    """What was handed out last led to a backward pass or a step."""
    if _latest is not None:
        _latest.trains = True


def _wrap_next(kind: Any) -> None:
    original = kind.__next__

    @wraps(original)
    def __next__(self: Any) -> Any:
        used, since = _asked(self)
        if used is not None and used.enough():
            ready(used)
        batch = original(self)
        if used is not None:
            _handed(used, self, batch, since)
        return batch

    kind.__next__ = __next__
    _removers.append(lambda: setattr(kind, "__next__", original))


def _asked(iterator: Any) -> tuple[Used | None, float]:
    try:
        used = _of(iterator)
        return used, 0.0 if used is None else used.asked(iterator)
    except Exception as fault:
        faulty(fault)
        return None, 0.0


def _handed(used: Used, iterator: Any, batch: Any, since: float) -> None:
    global _latest, pid
    try:
        used.came(iterator, batch, since)
        if _latest is None:
            pid = os.getpid()
            first_used()
        _latest = used
    except Exception as fault:
        faulty(fault)


def _of(iterator: Any) -> Used | None:
    """A loader that is built anew for each pass is the same one: same line, same data."""
    loader = iterator.__dict__.get(OWNER)
    if loader is None:
        return None
    site = loader.__dict__.get(SITE)
    key = id(loader) if site is None else (*site, id(loader.dataset))
    used = _used.get(key)
    if used is None:
        used = _used[key] = Used(loader)
    used.loader = loader
    return used


OWNER = "_unstuck_loader"


def _wrap_iter(kind: Any) -> None:
    original = kind.__iter__

    @wraps(original)
    def __iter__(self: Any) -> Any:
        iterator = original(self)
        if hasattr(iterator, "__dict__"):
            iterator.__dict__[OWNER] = self
        return iterator

    kind.__iter__ = __iter__
    _removers.append(lambda: setattr(kind, "__iter__", original))


def _wrap_init(kind: Any) -> None:
    original = kind.__init__

    @wraps(original)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        site = self.__dict__[SITE] = _call_site()
        original(self, *arguments, **options)
        if site is not None:
            _built.setdefault(tuple(site), set()).add(id(self.__dict__.get("dataset")))

    kind.__init__ = __init__
    _removers.append(lambda: setattr(kind, "__init__", original))


def _call_site() -> list[Any] | None:
    """File and line of the code that builds a loader, above torch and us; the innermost, whoever wrote it."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if "/torch/utils/data/" not in file and "/torchdata/" not in file and not file.startswith(_HERE):
            return [os.path.abspath(file) if file[:1] != "<" else file, frame.f_lineno]
        frame = frame.f_back
    return None


def _wait_for_gpu() -> None:
    """Else the work of a step would go on while its time is taken."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _count(batch: Any) -> int:
    from .batches import count

    return count(batch)


_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
