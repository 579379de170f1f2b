"""Always-on cost per training step: the same loop with the hooks in and out, block by block, in one process.

With `num_workers=0` the samples are fetched in the training process too: what noting them costs is measured apart, by
the difference between large and small batches.
"""

from __future__ import annotations

import importlib
import random
import sys
import tempfile
import time
from typing import Any

from bench.stats import Interval, interval

STEPS = 100
"""Steps a block."""


def measure(pairs: int, batch: int = 1) -> Interval:
    """Seconds of main-thread processor time that one step with `batch` samples costs more with the hooks in."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    from unstuck.record import bootstrap

    class Numbers(Dataset[Any]):
        rows = torch.randn(STEPS * batch, 4)

        def __len__(self) -> int:
            return STEPS * batch

        def __getitem__(self, index: int) -> Any:
            return self.rows[index]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def block() -> float:
        batches = iter(DataLoader(Numbers(), batch_size=batch))
        next(batches)  # opening a pass writes facts once; that is not a step
        began = time.thread_time()
        for x in batches:
            model(x).sum().backward()
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
