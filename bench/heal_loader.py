"""`unstuck.DataLoader` beside torch's and torchdata's: batches a second on healthy data, and how long a killed worker
holds it up.

Loaders with persistent workers are all alive and read an epoch each in turns, in changing order: what a machine does
meanwhile happens to all of them.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from typing import Any

import torch
import torch.utils.data
from torch.utils.data import Dataset

import unstuck
from bench.calm import calm_rounds
from bench.stats import Interval, interval
from bench.tuning import Computing, Large, Tiny, Waiting

WORKERS = 2
SECONDS = 40.0  # for each workload, at most
WORKLOADS: dict[str, tuple[type[Computing], int, int]] = {  # the data, samples of a batch, batches of an epoch
    "CPU-heavy transform": (Computing, 8, 40),
    "I/O wait": (Waiting, 8, 40),
    "tiny samples": (Tiny, 64, 300),
    "large samples": (Large, 16, 60),
}


class Part(Dataset):  # type: ignore[misc]  # mypy does not follow torch
    """So many samples of it."""

    def __init__(self, whole: Any, length: int) -> None:
        self.whole, self.length = whole, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return self.whole[index]


def kinds() -> dict[str, Any]:
    found: dict[str, Any] = {"torch": torch.utils.data.DataLoader, "unstuck": unstuck.DataLoader}
    try:
        from torchdata.stateful_dataloader import StatefulDataLoader

        found["torchdata"] = StatefulDataLoader
    except ImportError:
        pass
    return found


def ratios(rounds: int) -> Iterator[tuple[str, str, Interval, float, float]]:
    """By workload and loader: its batches a second by torch's, less one; torch's; how busy others were."""
    torch.set_num_threads(1)
    for name, (data, size, batches) in WORKLOADS.items():
        dataset = Part(data(), size * batches)
        settings: dict[str, Any] = {"batch_size": size, "num_workers": WORKERS, "persistent_workers": True}
        loaders = {kind: make(dataset, shuffle=True, **settings) for kind, make in kinds().items()}
        for loader in loaders.values():
            _epoch(loader)
        chance = random.Random(0)

        def one_round(loaders: dict[str, Any] = loaders, chance: random.Random = chance) -> dict[str, float]:
            return {kind: _epoch(loaders[kind]) for kind in chance.sample(list(loaders), len(loaders))}

        taken, busy = calm_rounds(one_round, rounds, SECONDS)
        for kind in loaders:
            if kind != "torch":
                ratio = interval([took["torch"] / took[kind] - 1 for took in taken])
                yield name, kind, ratio, batches * len(taken) / sum(took["torch"] for took in taken), busy


def _epoch(loader: Any) -> float:
    began = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - began


def recovery(times: int) -> tuple[Interval, float]:
    """Seconds that an epoch takes longer where a worker is killed in it; and what starting a worker takes."""
    dataset = Part(Waiting(), 8 * 60)
    longer, starts = [], []
    for _ in range(times):
        took = []
        for killed in (False, True):
            loader = unstuck.DataLoader(dataset, batch_size=8, num_workers=WORKERS)
            began = time.perf_counter()
            for number, _batch in enumerate(iterator := iter(loader)):
                if killed and number == 20:
                    os.kill(iterator._workers[0].pid, signal.SIGKILL)
            took.append(time.perf_counter() - began)
        longer.append(took[1] - took[0])
        starts.append(_start())
    return interval(longer), sum(starts) / len(starts)


def _start() -> float:
    began = time.perf_counter()
    next(iter(unstuck.DataLoader(Part(Tiny(), 1), num_workers=1)))
    return time.perf_counter() - began
