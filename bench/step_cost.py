"""Always-on cost per training step: the same loop with the hooks in and out, block by block, in one process."""

from __future__ import annotations

import importlib
import random
import sys
import tempfile
import time
from typing import Any

from bench.stats import Interval, interval

BATCH = 32
STEPS = 60
"""Steps a block."""


def measure(pairs: int) -> Interval:
    """Seconds of main-thread processor time that one step costs more with the hooks in."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from unstuck.record import bootstrap

    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(BATCH * STEPS, 16), torch.randn(BATCH * STEPS, 1))
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def block() -> float:
        batches = iter(DataLoader(data, batch_size=BATCH))
        next(batches)  # opening a pass writes facts once; that is not a step
        began = time.thread_time()
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        return (time.thread_time() - began) / (STEPS - 1)

    with tempfile.TemporaryDirectory() as folder:
        bootstrap.start(folder)
        seams_in()
        for _ in range(10):
            block()
        differences = [_pair(block) for _ in range(pairs)]
        bootstrap.stop()
    return interval(differences)


def _pair(block: Any) -> float:
    """With minus without, in random order."""
    order = [True, False] if random.random() < 0.5 else [False, True]
    took = {}
    for hooked in order:
        if hooked:
            seams_in()
        else:
            seams_out()
        took[hooked] = block()
    return float(took[True] - took[False])


def seams_in() -> None:
    from unstuck.record import bootstrap, probes

    if "loader" in probes.installed():
        return
    for name, (module, installer) in bootstrap.SEAMS.items():
        if name in sys.modules:
            getattr(importlib.import_module(f"unstuck.record.{module}"), installer)(sys.modules[name])


def seams_out() -> None:
    from unstuck.record import probes

    probes.remove_all()
