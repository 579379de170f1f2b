"""How much longer a step takes with everything about learning recorded, and beside it with other tools that look on.

One process, block by block in random order: with it and without. The governor's clock stands still in the blocks
without it, so that it earns its share of time only where it spends it. What is spent before it is earned, once in a
run, falls into the steps before the first block.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.stats import Interval, interval

SEAMS = (
    "torch.utils.data.dataloader",
    "torch.autograd",
    "torch.optim.optimizer",
    "torch.optim.lr_scheduler",
    "torch.nn.utils.clip_grad",
    "torch.amp.grad_scaler",
)
FIRST, WARM, COUNTED = 150, 2, 12
"""Steps before the first block; of a block: not counted, counted."""


def ratios(kind: str, pairs: int) -> Iterator[tuple[str, tuple[Interval, float]]]:
    """By tool: its share of a step that it costs more, and the seconds of a step without it."""
    import torch

    from bench import trainings
    from unstuck.recorder import start

    torch.set_num_threads(1)
    model, steps = trainings.steps(kind)
    on_gpu = next(model.parameters()).is_cuda
    clock = _gpu_clock(torch) if on_gpu else time.process_time
    with tempfile.TemporaryDirectory() as folder:
        start.start(folder)
        hooks_in(_known(SEAMS))
        for _ in range(FIRST):
            next(steps)
        pause = _Pause()
        pause.begin()
        yield "unstuck", _paired(steps, clock, pause.end, pause.begin, pairs)
        start.stop()
    switch = torch.autograd.set_detect_anomaly
    few = max(4, pairs // 10)
    yield "set_detect_anomaly", _paired(steps, clock, lambda: switch(True), lambda: switch(False), few)
    underflow = _underflow(model)
    if underflow is not None:
        yield "DebugUnderflowOverflow", _paired(steps, clock, *underflow, few)


class _Pause:
    """Takes the recorder out and puts it in again; its governor knows nothing of the time between."""

    def begin(self) -> None:
        hooks_out()
        self._since = time.monotonic()

    def end(self) -> None:
        from unstuck.recorder.governor import governor

        governor._asked += time.monotonic() - self._since
        hooks_in(_known(SEAMS))


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    from unstuck.recorder import start

    for name in names:
        __import__(name)
    return tuple(name for name in names if name in start.SEAMS)


def _paired(
    steps: Iterator[None], clock: Callable[[], float], on: Callable[[], object], off: Callable[[], object], pairs: int
) -> tuple[Interval, float]:
    found, plain = [], []
    for _ in range(pairs):
        took = {}
        for watched in random.sample([True, False], 2):
            if watched:
                on()
            for _ in range(WARM):
                next(steps)
            began = clock()
            for _ in range(COUNTED):
                next(steps)
            took[watched] = clock() - began
            if watched:
                off()
        found.append(took[True] / took[False] - 1)
        plain.append(took[False] / COUNTED)
    return interval(found), sorted(plain)[len(plain) // 2]


def _gpu_clock(torch: Any) -> Callable[[], float]:
    def clock() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return clock


def _underflow(model: Any) -> tuple[Callable[[], object], Callable[[], object]] | None:
    """That of Hugging Face, where it is installed; it has no way to be taken out again but to clear all hooks."""
    try:
        from transformers.debug_utils import DebugUnderflowOverflow
    except ImportError:
        print("transformers is not installed: DebugUnderflowOverflow is not measured", file=sys.stderr)
        return None

    def off() -> None:
        for module in model.modules():
            module._forward_hooks.clear()

    return (lambda: DebugUnderflowOverflow(model, max_frames_to_save=1)), off


def hooks_in(seams: tuple[str, ...]) -> None:
    from unstuck.recorder import start

    for name in seams:
        start.install_seam(name, sys.modules[name])


def hooks_out() -> None:
    from unstuck.recorder import guard

    guard.remove_all()
