"""What `tune` chooses against the best of a full grid, and how long it takes to choose: four kinds of data.

The grid measures each of its loaders for the same time. Then the choice and the grid's best are both alive and
measured in turns: what a machine does meanwhile happens to both.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

import unstuck
from bench.stats import Interval, interval
from unstuck.tuning.race import rate_of
from unstuck.tuning.trial import Trial
from unstuck.tuning.worker_settings import Settings

WORKERS, PREFETCH = (0, 1, 2, 3, 4, 6, 8), (2, 4)
CELL, SLICE = 2.0, 0.4
"""Seconds for a loader of the grid; of a slice when two are compared."""
MAY_TAKE = 0.25
"""Of the grid's time; what `tune` is given is a little less, for it ends what it has begun."""


class Computing(Dataset):  # type: ignore[misc]  # mypy does not follow torch
    """A transform in Python that keeps a core busy for some milliseconds."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> Any:
        value = float(index)
        for number in range(20_000):
            value = (value * 1.000001 + number) % 1e6
        return torch.full((16,), value)


class Waiting(Computing):
    """Storage that answers after some milliseconds."""

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.004)
        return torch.full((16,), float(index))


class Tiny(Computing):
    """A few numbers, at hand."""

    def __getitem__(self, index: int) -> Any:
        return torch.full((4,), float(index))


class Large(Computing):
    """Some 800 kB, at hand."""

    def __init__(self) -> None:
        self.image = torch.rand(3, 256, 256)

    def __getitem__(self, index: int) -> Any:
        return self.image + 1.0


KINDS: dict[str, type[Computing]] = {
    "CPU-heavy transform": Computing,
    "I/O wait": Waiting,
    "tiny samples": Tiny,
    "large samples": Large,
}


def compare(scale: float) -> Iterator[tuple[str, str, str, Interval, float, float]]:
    """By kind: the choice and the grid's best in words, their ratio, seconds of the search and of the grid."""
    torch.set_num_threads(1)
    for name, kind in KINDS.items():
        loader = DataLoader(kind(), batch_size=16, shuffle=True)
        began = time.monotonic()
        best = _grid(loader, CELL * max(scale, 0.2))
        grid = time.monotonic() - began
        began = time.monotonic()
        tuned = unstuck.tune(loader, seconds=MAY_TAKE * 0.85 * grid)
        took = time.monotonic() - began
        chosen = Settings(**{**tuned.settings, "threads": tuned.threads})
        yield name, chosen.words(), best.words(), _ratio(loader, chosen, best, max(6, int(24 * scale))), took, grid


def _grid(loader: Any, seconds: float) -> Settings:
    """In random order: a machine that grows slower must not favour the first."""
    cells = [Settings().but(num_workers=workers, prefetch_factor=depth) for workers in WORKERS for depth in PREFETCH]
    cells = list(dict.fromkeys(cells))
    random.shuffle(cells)
    rates = {}
    for cell in cells:
        trial = Trial(loader, cell, timeout=60)
        try:
            rates[cell] = rate_of(trial.slice(seconds))
        finally:
            trial.close()
    return max(rates, key=lambda cell: rates[cell])


def _ratio(loader: Any, chosen: Settings, best: Settings, pairs: int) -> Interval:
    """Samples a second of the choice to those of the grid's best."""
    if chosen == best:
        return Interval(1.0, 1.0, 1.0, 0)
    trials = {settings: Trial(loader, settings, timeout=60) for settings in (chosen, best)}
    try:
        ratios = []
        for _ in range(pairs):
            rates = {each: rate_of(trials[each].slice(SLICE)) for each in random.sample([chosen, best], 2)}
            ratios.append(rates[chosen] / rates[best])
        return interval(ratios)
    finally:
        for trial in trials.values():
            trial.close()
