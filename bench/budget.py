"""What is sampled under the budget (fingerprints of batches, descriptions of loops), as a share of ordinary steps.

The same recorded training with it and without, block by block, in one process, in processor time; nothing is left out
of a block. In each block with it the supervisor's question is asked once: more often than it asks after some seconds.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator

from bench.stats import Interval, interval
from bench.step_cost import FETCH, STEP, hooks_in, hooks_out

WARM, COUNTED = 10, 200
"""Steps of a block: not counted, counted."""


def share(pairs: int) -> tuple[Interval, float]:
    """Share of a step that goes into it, and the seconds of a step."""
    import torch

    from unstuck.recorder import flight, start

    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        start.start(folder)
        hooks_out()
        hooks_in((*STEP, *FETCH))
        steps = _training()
        for _ in range(flight.FULL_STEPS):  # every probe is loaded by then
            next(steps)
        ratios, plain = [], []
        for _ in range(pairs):
            took = {}
            for sampled in random.sample([True, False], 2):
                took[sampled] = _block(steps, sampled)
            ratios.append(took[True] / took[False] - 1)
            plain.append(took[False])
        start.stop()
    return interval(ratios), sum(plain) / len(plain)


def _block(steps: Iterator[None], sampled: bool) -> float:
    from unstuck.recorder import flight, guard
    from unstuck.recorder import layout as at

    if sampled:
        guard.OFF.pop("fingerprints", None)
    else:
        guard.OFF["fingerprints"] = "not in this block"

    for _ in range(WARM):
        next(steps)
    before = time.process_time_ns()
    for number in range(COUNTED):
        if sampled and number == COUNTED // 2:
            flight.words[at.W_REQUEST] = at.ASK_LOOPS
        next(steps)
    return (time.process_time_ns() - before) / COUNTED / 1e9


def _training() -> Iterator[None]:
    """A small convolutional net on batches of 32 colour images, epochs of 200 steps."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    images = TensorDataset(torch.randn(6400, 3, 32, 32), torch.randint(0, 10, (6400,)))
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(10),
    )
    model(images.tensors[0][:1])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    while True:
        for x, y in DataLoader(images, batch_size=32, shuffle=True):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield
