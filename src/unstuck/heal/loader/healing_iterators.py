"""torch's own iterators, with a pool of workers that are replaced, or with care for samples in the same process."""

from __future__ import annotations

import os

import torch.multiprocessing
from torch.utils.data import _utils
from torch.utils.data.dataloader import (
    _DatasetKind,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)

from .care import NOTHING, Care
from .quarantine import BadSample, LoaderError, Quarantine
from .resume import Progress
from .sample_care import Found, SampleCare
from .worker_pool import Answer, WorkerPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CONTEXT = "_DataLoader__multiprocessing_context"


class Healing:
    """What a loader keeps for its iterators: the settings, the quarantine, where the epoch stands."""

    def __init__(self, care: Care, quarantine: Quarantine) -> None:
        self.care, self.quarantine = care, quarantine
        self.progress = Progress()
        self.resumed: dict[str, Any] | None = None

    def begin_epoch(self) -> Progress:
        self.quarantine.begin_epoch()
        resumed, self.resumed = self.resumed, None
        self.progress = Progress(resumed)
        return self.progress


class WithWorkers(_MultiProcessingDataLoaderIter):  # type: ignore[misc]  # torch is not typed here
    """Batches of workers."""

    def __init__(self, loader: Any, healing: Healing) -> None:
        self._healing, self._owner = healing, os.getpid()
        self._pool: Any = None
        self._generator = loader.generator
        self._progress = healing.begin_epoch()
        context = loader.multiprocessing_context or torch.multiprocessing
        self._iterable = loader._dataset_kind == _DatasetKind.Iterable
        self._pool = WorkerPool(context, healing.care, healing.quarantine, self._iterable)
        before = loader.__dict__[_CONTEXT]
        loader.__dict__[_CONTEXT] = self._pool
        try:
            super().__init__(loader)
        finally:
            loader.__dict__[_CONTEXT] = before
        _utils.signal_handling._remove_worker_pids(id(self))  # torch would raise when one of them dies
        self._worker_pids_set = False
        self._pool.running = True

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        if not first_iter:
            self._progress = self._healing.begin_epoch()
            self._pool.begin_again()
        self._to_drop = self._progress.resumed["done"] if self._progress.resumed and self._iterable else 0
        self._in_reset = True
        super()._reset(loader, first_iter)
        self._in_reset = False

    def _get_data(self) -> Any:
        """A worker's answer to a reset that an interrupt ended may come in the next pass, where it means nothing."""
        found = super()._get_data()
        while not self._in_reset and type(found[0]).__name__ == "_ResumeIteration":
            found = super()._get_data()
        return found

    def _next_index(self) -> Any:
        if self._iterable:
            return super()._next_index()
        return self._progress.draw(self._send_idx, super()._next_index, self._generator)

    def _next_data(self) -> Any:
        progress = self._progress
        try:
            data = super()._next_data()
            while data is NOTHING or self._to_drop:
                self._to_drop -= data is not NOTHING
                data = super()._next_data()
        except StopIteration:
            progress.ended = True
            raise
        return data

    def _process_data(self, data: Any, *rest: Any) -> Any:
        if type(data) is not Answer:
            return super()._process_data(data, *rest)
        if self._iterable:
            self._progress.done += 1
        else:
            self._progress.handed_out_number(data.number)
        return super()._process_data(data.data, *rest)

    def _shutdown_workers(self) -> None:
        if os.getpid() != self._owner:
            return  # a copy of this iterator in a forked process
        super()._shutdown_workers()
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()


class InProcess(_SingleProcessDataLoaderIter):  # type: ignore[misc]  # torch is not typed here
    """Batches made by the training's own process: a sample that raises can be left out; one that hangs cannot."""

    def __init__(self, loader: Any, healing: Healing) -> None:
        self._healing, self._generator = healing, loader.generator
        self._progress = healing.begin_epoch()
        super().__init__(loader)
        self._iterable = loader._dataset_kind == _DatasetKind.Iterable
        self._samples = SampleCare(healing.care, [0] * 8)
        self._samples.take(self._dataset_fetcher, self._iterable)
        self._number = -1
        self._failure: LoaderError | None = None
        """Why this epoch cannot go on."""
        resumed = self._progress.resumed
        self._to_drop = resumed["done"] if resumed and self._iterable else 0

    def _next_index(self) -> Any:
        if self._iterable:
            return super()._next_index()
        self._number += 1
        self._index = self._progress.draw(self._number, super()._next_index, self._generator)
        if self._failure is not None:
            raise self._failure
        self._healing.quarantine.drawn += len(self._index) if self._auto_collation else 1
        return self._index

    def _next_data(self) -> Any:
        while True:
            self._samples.found = found = Found()
            try:
                data = super()._next_data()
            except StopIteration:
                self._progress.ended = True
                raise
            for bad in found.bad:
                self._report(bad)
            if self._iterable:
                self._progress.done += 1
            else:
                self._progress.handed_out_number(self._number)
            if self._to_drop:
                self._to_drop -= 1
            elif data is not NOTHING:
                return data

    def _report(self, bad: Any) -> None:
        samples = self._index if not self._iterable and self._auto_collation else None
        key = bad.position if self._iterable else self._index if samples is None else samples[bad.position]
        other = None if bad.replaced_by is None or samples is None else samples[bad.replaced_by]
        quarantine, batch = self._healing.quarantine, None if self._iterable else self._number
        try:
            quarantine.add(BadSample(key, bad.reason, bad.what, bad.traceback, None, batch, quarantine.epoch, other))
        except LoaderError as error:
            self._failure = error
            raise


def iterator_of(loader: Any, healing: Healing) -> Any:
    """As torch's loader makes its own."""
    if loader.num_workers == 0:
        return InProcess(loader, healing)
    loader.check_worker_number_rationality()
    return WithWorkers(loader, healing)
