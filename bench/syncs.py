"""How often a training waits for its GPU, with unstuck and without: counted in a profiler's trace of the same steps."""

from __future__ import annotations

import tempfile
from collections import Counter
from typing import Any

from bench.slowdown import SEAMS, _known, hooks_in, hooks_out

STEPS = 80
WAITS = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy")


def counts(kind: str) -> tuple[Counter[str], Counter[str]]:
    """Calls of the CUDA runtime that wait, in as many steps from the first on: without it, with it."""
    from unstuck.recorder import start

    plain = _trace(kind)
    with tempfile.TemporaryDirectory() as folder:
        start.start(folder)
        hooks_in(_known(SEAMS))
        watched = _trace(kind)
        hooks_out()
        start.stop()
    return plain, watched


def _trace(kind: str) -> Counter[str]:
    import torch
    from torch.profiler import ProfilerActivity, profile

    from bench import trainings

    _, steps = trainings.steps(kind)
    next(steps)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True) as seen:
        for _ in range(STEPS):
            next(steps)
    found: list[Any] = seen.events()
    return Counter(event.name for event in found if event.name in WAITS)
