"""The loaders a script uses, which of them trains, and what a training step takes besides its data."""

from __future__ import annotations

import os
import sys
import time
import weakref
from dataclasses import dataclass
from functools import wraps

from ..recorder import dispatch as recorder_dispatch
from ..recorder import flight, guard, imports, start, tensors
from ..recorder.hooks import dataloader as hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..recorder.loading import Loading

SEAMS = (
    "torch.utils.data.dataloader",
    "torchdata.stateful_dataloader.stateful_dataloader",
    "torch.autograd",
    "torch.optim.optimizer",
)
BUILT_AT, LOADER = "_unstuck_built_at", "_unstuck_loader"  # of a loader; of an iterator
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
STEPS = 24  # steps from which what a step takes is known well,
FEW_STEPS, FEW_SECONDS = 4, 3.0  # or fewer, after so long
LONG_SECONDS = 20.0  # after which one step is enough; and without training, the busiest loader is taken

Spot = tuple[str, int]  # file and line


@dataclass(frozen=True)
class Step:
    """A training step, measured over the first batches."""

    compute: float
    """Seconds from getting a batch to asking for the next."""
    cpu: float
    """Processor seconds of the training process meanwhile."""
    batch: float
    """Samples."""


class LoaderInUse:
    """A loader that is built anew for each pass counts as the same one: same line, same data."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.built_at: Spot | None = loader.__dict__.get(BUILT_AT)
        self.loading: Loading | None = None
        self.trained = False
        self.batches = 0
        self.began = time.monotonic()
        self.slowest = 0.0
        """Seconds of the batch that was waited for longest."""
        self._gaps: list[tuple[float, float]] = []
        """Seconds and processor seconds between a batch and asking for the next, within a pass."""
        self._samples = 0.0
        self._iterators: weakref.WeakSet[Any] = weakref.WeakSet()
        self._handed: tuple[int, float, float] | None = None

    def trains(self) -> bool:
        """It is the loader whose batch is asked for now, and training has begun."""
        began = flight.steps() or flight.state[flight.BACKWARDS]
        self.trained = self.trained or bool(began and self.loading is not None and self.loading.trains())
        return self.trained

    def asked(self, iterator: Any) -> float:
        """A batch is asked for; when."""
        if self._handed is not None and self._handed[0] == id(iterator):
            wait_for_gpu()  # else the work of a step would go on while its time is taken
            self._gaps.append((time.perf_counter() - self._handed[1], time.process_time() - self._handed[2]))
        self._handed = None
        return time.perf_counter()

    def came(self, iterator: Any, batch: Any, since: float) -> None:
        now = time.perf_counter()
        self._iterators.add(iterator)
        self.batches += 1
        self.slowest = max(self.slowest, now - since)
        self._samples += self.loader.batch_size or samples_in(batch)
        self._handed = id(iterator), now, time.process_time()

    def step(self) -> Step | None:
        """None where nothing was trained, or no pass had a second batch."""
        usual = self._gaps[2:] if len(self._gaps) > 4 else self._gaps[1:] or self._gaps  # the first ones warm up
        if not self.trained or not usual:
            return None
        compute, cpu = (sum(column) / len(usual) for column in zip(*usual, strict=True))
        return Step(compute, cpu, self._samples / self.batches)

    def step_is_known(self) -> bool:
        steps, passed = len(self._gaps), time.monotonic() - self.began
        return steps >= STEPS or (steps >= FEW_STEPS and passed > FEW_SECONDS) or passed > LONG_SECONDS

    def dismiss_workers(self) -> None:
        """They would take the cores from the workers that come now."""
        import multiprocessing

        for iterator in list(self._iterators):
            try:
                iterator._shutdown_workers()
            except Exception:
                continue  # they wait with full hands and do no harm
        for child in multiprocessing.active_children():
            child.join(0.05)


class Watching:
    """Sees every batch until `stop`. `asked` is called before a batch is drawn, `failed` when one cannot be had; they
    need not return."""

    def __init__(
        self,
        asked: Callable[[LoaderInUse], object],
        failed: Callable[[LoaderInUse, BaseException], object],
        faulty: Callable[[Exception], object],
    ) -> None:
        self._asked, self._failed, self._faulty = asked, failed, faulty
        self._known: dict[Any, LoaderInUse] = {}
        self._built: dict[Spot, set[int]] = {}
        """Datasets for which a loader was built, by line."""
        self._removers: list[Callable[[], object]] = []

    def start(self) -> None:
        """The recorder's own hooks count steps and passes; none of its probes is loaded."""
        recorder_dispatch.LISTENERS.update(dict.fromkeys(recorder_dispatch.LISTENERS, ()))
        guard.OFF["learning"] = guard.OFF["passes"] = "not wanted here"
        for name in SEAMS:
            imports.when_imported(name, lambda module, name=name: start.install_seam(name, module))  # type: ignore[misc]
        imports.when_imported(SEAMS[0], self._install)
        imports.when_imported(SEAMS[1], self._install_stateful)

    def stop(self) -> None:
        while self._removers:
            self._removers.pop()()
        guard.remove_all()

    def busiest(self) -> LoaderInUse | None:
        """The loader that trains and has given most batches; else the one with most batches."""
        return max(self._known.values(), key=lambda each: (each.trained, each.batches), default=None)

    def built_by_line(self, built_at: Spot | None) -> int:
        """Loaders of different data that one line has built."""
        return len(self._built.get(built_at, ())) if built_at else 0

    # --- the seams ---------------------------------------------------------------------------------------

    def _install(self, module: Any) -> None:
        self._wrap(module._BaseDataLoaderIter, "__next__", self._next)
        self._wrap(module.DataLoader, "__iter__", self._iter)
        self._wrap(module.DataLoader, "__init__", self._build)

    def _install_stateful(self, module: Any) -> None:
        """torchdata's iterators have their own `__next__`."""
        self._wrap(module._StatefulBaseDataLoaderIter, "__next__", self._next)
        self._wrap(module.StatefulDataLoader, "__iter__", self._iter)

    def _wrap(self, kind: Any, name: str, instead: Any) -> None:
        """Call `instead` with the original method and its arguments."""
        original = getattr(kind, name)

        @wraps(original)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            return instead(original, *arguments, **options)

        setattr(kind, name, wrapper)
        self._removers.append(lambda: setattr(kind, name, original))

    def _next(self, original: Any, iterator: Any) -> Any:
        known = self._guarded(self._used, iterator)
        since = self._guarded(known.asked, iterator) if known is not None else None
        if known is None or since is None:
            return original(iterator)
        self._asked(known)
        try:
            batch = original(iterator)
        except StopIteration:
            raise
        except BaseException as error:
            self._failed(known, error)
            raise
        self._guarded(known.came, iterator, batch, since)
        return batch

    def _iter(self, original: Any, loader: Any) -> Any:
        iterator = original(loader)
        if hasattr(iterator, "__dict__"):
            iterator.__dict__[LOADER] = loader  # nobody else may keep it: `for batch in DataLoader(...)`
        return iterator

    def _used(self, iterator: Any) -> LoaderInUse | None:
        loader = iterator.__dict__.get(LOADER)
        if loader is None:
            return None
        spot = loader.__dict__.get(BUILT_AT)
        key = id(loader) if spot is None else (*spot, id(loader.dataset))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = LoaderInUse(loader)
        known.loader, known.loading = loader, iterator.__dict__.get(hook.OPENED)
        return known

    def _build(self, original: Any, loader: Any, *arguments: Any, **options: Any) -> None:
        spot = loader.__dict__[BUILT_AT] = self._guarded(_calling_line)
        original(loader, *arguments, **options)
        if spot is not None:
            self._built.setdefault(spot, set()).add(id(loader.__dict__.get("dataset")))

    def _guarded(self, action: Callable[..., Any], *arguments: Any) -> Any:
        """None after a fault of ours."""
        try:
            return action(*arguments)
        except Exception as fault:
            self._faulty(fault)
            return None


def samples_in(batch: Any) -> int:
    """The first dimension of the first tensor in a batch; 1 if there is none."""
    sizes = (int(tensor.shape[0]) for _, tensor in tensors.plain_tensors(batch) if tensor.dim())
    return next(sizes, 1)


def wait_for_gpu() -> None:
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _calling_line() -> Spot | None:
    """The innermost code above torch and us, whoever wrote it: there the loader is built."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if "/torch/utils/data/" not in file and "/torchdata/" not in file and not file.startswith(HERE):
            return os.path.abspath(file) if file[:1] != "<" else file, frame.f_lineno
        frame = frame.f_back
    return None
