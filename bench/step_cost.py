"""What the hooks cost in a training step: the same loop with them in and out, block by block, in one process.

After each change a stretch of steps is not counted: the interpreter first forgets what it knew about the patched
classes, and that is not the hooks' cost. Of each block the slowest fifth of the steps is left out: other processes.
Sampled steps (one in thirty-two) are counted for themselves: `always` is without them, `whole` with their share.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.stats import Interval, interval

WARM, COUNTED = 96, 256
"""Steps of a block: not counted, counted."""
SAMPLED = 32
STEP = (
    "torch.utils.data.dataloader", "torch.autograd", "torch.optim.optimizer", "torch.optim.lr_scheduler",
    "torch.nn.utils.clip_grad", "torch.autograd.graph",
)  # fmt: skip
FETCH = ("torch.utils.data._utils.fetch",)


@dataclass
class Block:
    """Seconds of its ordinary steps, and of its sampled ones."""

    ordinary: list[float] = field(default_factory=list)
    sampled: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        kept = sorted(self.ordinary)[: max(1, len(self.ordinary) * 4 // 5)]
        return sum(kept) / len(kept)

    @property
    def whole(self) -> float:
        """With the sampled steps, of which the slowest fifth is left out too."""
        kept = sorted(self.sampled)[: max(1, len(self.sampled) * 4 // 5)]
        if not kept:
            return self.mean
        return (self.mean * (SAMPLED - 1) + sum(kept) / len(kept)) / SAMPLED


def per_step(pairs: int) -> tuple[Interval, Interval, float]:
    """Seconds a step costs more with the hooks in: ordinary steps, all steps; and how long a step takes without."""
    blocks = _measure(pairs, small_steps(1), STEP)
    always = interval([hooked.mean - plain.mean for hooked, plain in blocks])
    whole = interval([hooked.whole - plain.mean for hooked, plain in blocks])
    return always, whole, sum(plain.mean for _, plain in blocks) / len(blocks)


def per_batch(pairs: int, batch: int) -> Interval:
    """Seconds that fetching a batch costs more with its samples noted, in a worker or, without workers, in main."""
    return interval([hooked.mean - plain.mean for hooked, plain in _measure(pairs, small_steps(batch), FETCH)])


def ratio(pairs: int, seconds: float) -> tuple[Interval, float]:
    """How many times as long a step of so many seconds takes with the hooks in, sampled steps included; less one."""
    steps, took = steps_of(seconds)
    blocks = _measure(pairs, steps, STEP, warm=40, counted=64)
    return interval([hooked.whole / plain.mean - 1 for hooked, plain in blocks]), took


def _measure(
    pairs: int, steps: Iterator[None], seams: tuple[str, ...], warm: int = WARM, counted: int = COUNTED
) -> list[tuple[Block, Block]]:
    import torch

    from unstuck.recorder import flight, start

    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        start.start(folder)
        for _ in range(3 * flight.FULL_STEPS):  # past the first steps, which are all sampled
            next(steps)
        found = []
        for _ in range(pairs):
            blocks = {hooked: _block(steps, hooked, seams, warm, counted) for hooked in random.sample([True, False], 2)}
            found.append((blocks[True], blocks[False]))
        start.stop()
    return found


def small_steps(batch: int) -> Iterator[None]:
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
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            yield


def steps_of(seconds: float) -> tuple[Iterator[None], float]:
    """A training whose steps take about so long, and how long they take."""
    import torch

    torch.set_num_threads(1)
    width = 64
    while True:
        steps = _wide(width)
        for _ in range(5):
            next(steps)
        began = time.perf_counter()
        for _ in range(20):
            next(steps)
        took = (time.perf_counter() - began) / 20
        if took >= 0.8 * seconds:
            return steps, took
        width = int(width * 1.2) + 8


def _wide(width: int) -> Iterator[None]:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.randn(4096, width), torch.randint(0, 10, (4096,)))
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    while True:
        for x, y in DataLoader(data, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            yield


def _block(steps: Iterator[None], hooked: bool, seams: tuple[str, ...], warm: int, counted: int) -> Block:
    from unstuck.recorder import flight

    hooks_out()
    if hooked:
        hooks_in(seams)
    for _ in range(warm):
        next(steps)
    clock, state, full = time.perf_counter_ns, flight.state, flight.FULL
    block = Block()
    before = clock()
    for _ in range(counted):
        sampled = hooked and state[full]
        next(steps)
        now = clock()
        (block.sampled if sampled else block.ordinary).append((now - before) / 1e9)
        before = now
    return block


def hooks_in(seams: tuple[str, ...]) -> None:
    from unstuck.recorder import start

    for name in seams:
        start.install_seam(name, sys.modules[name])


def hooks_out() -> None:
    from unstuck.recorder import guard

    guard.remove_all()
