"""Datasets for the tests of `unstuck.DataLoader`; at the top of a module, because spawned workers import them."""

from __future__ import annotations

import mmap
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

LARGE = 20_000  # floats: more than is sent as bytes


class Numbers(Dataset):  # type: ignore[misc]  # mypy does not follow torch
    """Sample i is i, some of it random, some in large tensors."""

    def __init__(self, length: int = 64, large: bool = False, noise: bool = False) -> None:
        self.length, self.large, self.noise = length, large, noise

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Any]:
        sample: dict[str, Any] = {"key": index, "value": torch.full((LARGE if self.large else 3,), float(index))}
        if self.noise:
            sample["noise"] = torch.rand(2), random.random(), numpy.random.rand(3)
        return sample


class InBatches(Numbers):
    """Fetches whole batches."""

    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        return [self[index] for index in indices]


class Faulty(Numbers):
    """Some samples are bad, each in its own way."""

    def __init__(self, length: int = 64, **faults: str) -> None:
        super().__init__(length)
        self.faults = {int(name.strip("_")): fault for name, fault in faults.items()}

    def __getitem__(self, index: int) -> dict[str, Any]:
        fault = self.faults.get(index)
        if fault is not None:
            FAULTS[fault](index)
        return super().__getitem__(index)


class FaultyInBatches(Faulty):
    """The same where whole batches are fetched."""

    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        return [self[index] for index in indices]


class OnlyInBatches(FaultyInBatches):
    """Cannot be asked for one sample."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        raise TypeError("fetch whole batches")

    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        return [Faulty.__getitem__(self, index) for index in indices]


class Raw(Numbers):
    """Some megabytes a sample that are no tensor: there is a while in which its worker writes them."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"key": index, "value": bytes([index % 256]) * 5_000_000}


class Ragged(Numbers):
    """One sample does not fit the others."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"key": index, "value": torch.zeros(4 if index == 9 else 3)}


class Slow(Numbers):
    """Some milliseconds a sample, of changing size: there is always something to be killed at."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        time.sleep(random.random() * 0.002)
        size = LARGE if index % 3 else 300_000 if index % 2 else 3
        return {"key": index, "value": torch.full((size,), float(index)), "raw": b"x" * (index % 5 * 100_000)}


def as_they_are(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Another one."""
    return samples


def by_key(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """A collate function of the user's: nothing is put together."""
    return {"key": torch.tensor([sample["key"] for sample in samples]), "all": [sample["value"] for sample in samples]}


class Stream(IterableDataset):  # type: ignore[misc]  # as above
    """Each worker has every second number."""

    def __init__(self, length: int = 40, dies_at: int = -1, raises_at: int = -1) -> None:
        self.length, self.dies_at, self.raises_at = length, dies_at, raises_at

    def __iter__(self) -> Iterator[dict[str, Any]]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return Counting(self, range(first, self.length, step))


class Counting:
    """Not a generator: it goes on after an error."""

    def __init__(self, stream: Stream, numbers: range) -> None:
        self.stream, self.numbers = stream, iter(numbers)

    def __iter__(self) -> Counting:
        return self

    def __next__(self) -> dict[str, Any]:
        number = next(self.numbers)
        time.sleep(0.001)
        if number == self.stream.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == self.stream.raises_at:
            raise ValueError(f"cannot read {number}")
        return {"key": number}


class LargeStream(Stream):
    """With tensors of a size that is not sent as bytes."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return ({**item, "value": torch.full((LARGE,), float(item["key"]))} for item in super().__iter__())


class Generated(Stream):
    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from super().__iter__()


def _raise(index: int) -> None:
    raise ValueError(f"cannot read sample {index}")


def _hang(_: int) -> None:
    time.sleep(600)


def _spin(_: int) -> None:
    while True:
        pass


def _segfault(_: int) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _kill(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _exit(_: int) -> None:
    os._exit(3)


def _sys_exit(_: int) -> None:
    sys.exit(4)


def _exhaust(_: int) -> None:
    """More memory than there is."""
    taken = []
    while True:
        piece = mmap.mmap(-1, 1 << 24)
        piece.write(b"x" * (1 << 24))
        taken.append(piece)


def _close_files(_: int) -> None:
    os.closerange(3, 256)


def _unpicklable(_: int) -> None:
    raise Unpicklable(lambda: None)


class Unpicklable(Exception):
    def __init__(self, what: Any) -> None:
        super().__init__("cannot be pickled")
        self.what = what


FAULTS = {
    "raises": _raise,
    "hangs": _hang,
    "spins": _spin,
    "segfaults": _segfault,
    "is killed": _kill,
    "exits": _exit,
    "leaves": _sys_exit,
    "closes all files": _close_files,
    "exhausts": _exhaust,
    "raises oddly": _unpicklable,
}
