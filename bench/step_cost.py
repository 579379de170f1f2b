"""What the hooks cost in a training step: the same loop with them in and out, block by block, in one process.

After each change a stretch of steps is not counted: the interpreter first forgets what it knew about the patched
classes, and that is not the hooks' cost. Of each block the slowest fifth of the steps is left out: other processes.
"""

from __future__ import annotations

import importlib
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.stats import Interval, interval

WARM, COUNTED = 150, 450
"""Steps of a block: not counted, counted."""
STEP = ("torch.utils.data.dataloader", "torch.autograd", "torch.optim.optimizer")
FETCH = ("torch.utils.data._utils.fetch",)


def per_step(pairs: int) -> Interval:
    """Seconds a step costs more with the loader's, backward's and the optimizer's hooks in (workers fetch)."""
    return _measure(pairs, batch=1, seams=STEP)


def per_batch(pairs: int, batch: int) -> Interval:
    """Seconds that fetching a batch costs more with its samples noted, in a worker or, without workers, in main."""
    return _measure(pairs, batch, seams=FETCH)


def _measure(pairs: int, batch: int, seams: tuple[str, ...]) -> Interval:
    import torch

    from unstuck.recorder import start

    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        start.start(folder)
        _out()
        steps = _training(batch)
        differences = [_pair(steps, seams) for _ in range(pairs)]
        start.stop()
    return interval(differences)


def _training(batch: int) -> Iterator[None]:
    """An endless training of small steps; each `next` is one."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    class Numbers(Dataset[Any]):  # type: ignore[misc]  # mypy does not follow torch
        rows = torch.randn(64, 16)

        def __len__(self) -> int:
            return 100_000 * batch

        def __getitem__(self, index: int) -> Any:
            return self.rows[index & 63]

    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    while True:
        for x in DataLoader(Numbers(), batch_size=batch):
            model(x).sum().backward()
            optimizer.step()
            yield


def _pair(steps: Iterator[None], seams: tuple[str, ...]) -> float:
    """With minus without, in random order."""
    took = {}
    for hooked in random.sample([True, False], 2):
        _out()
        if hooked:
            _in(seams)
        took[hooked] = _block(steps)
    return took[True] - took[False]


def _block(steps: Iterator[None]) -> float:
    for _ in range(WARM):
        next(steps)
    clock: Callable[[], int] = time.perf_counter_ns
    taken = []
    before = clock()
    for _ in range(COUNTED):
        next(steps)
        now = clock()
        taken.append(now - before)
        before = now
    kept = sorted(taken)[: COUNTED * 4 // 5]
    return sum(kept) / len(kept) / 1e9


def _in(seams: tuple[str, ...]) -> None:
    from unstuck.recorder import flight, start

    for name in seams:
        module, installer = start.SEAMS[name]
        getattr(importlib.import_module(f"unstuck.recorder.{module}"), installer)(sys.modules[name])
    for change in flight.when_full_changes.values():
        change(flight.full)


def _out() -> None:
    from unstuck.recorder import guard

    guard.remove_all()
