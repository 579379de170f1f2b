"""What `unstuck.guard` costs in a step: `python -m bench.heal_guard [PAIRS]`, or `--gpu`.

The same training twice in one process, one of them guarded, block by block in random order. On the CPU the processor
time of the thread counts, so that other processes matter less; on a GPU the time until it has done all its work. The
guard reads each gradient once: what that costs depends on how much is computed for each weight. A step with a small
batch through wide layers is the worst case on a CPU. On a GPU it launches about ten kernels more: nothing where the
processor is ahead of the GPU anyway, much where a step is only a few dozen tiny kernels.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

import unstuck
from bench import trainings
from bench.stats import Interval, interval

BLOCK_STEPS = 24
LIMIT = 0.01


def cnn(batch: int = 6) -> tuple[Any, Any, Any]:
    def block(before: int, after: int) -> list[Any]:
        return [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]

    model = nn.Sequential(*block(3, 16), *block(16, 32), nn.Flatten(), nn.Linear(32 * 64, 10))
    return model, torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))


def mlp(batch: int = 512, width: int = 160) -> tuple[Any, Any, Any]:
    layers = (nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    return nn.Sequential(*layers), torch.randn(batch, width), torch.randint(0, 10, (batch,))


def small_batch() -> tuple[Any, Any, Any]:
    return mlp(32, 480)


def ordinary_batch() -> tuple[Any, Any, Any]:
    return cnn(32)


def large_cnn() -> tuple[Any, Any, Any]:
    layers: list[nn.Module] = []
    for before, after in ((3, 64), (64, 128), (128, 256), (256, 512)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers += [nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 100))
    return model, torch.randn(256, 3, 64, 64), torch.randint(0, 100, (256,))


def transformer() -> tuple[Any, Any, Any]:
    words = torch.randint(0, 8192, (16, 513))
    model = nn.Sequential(trainings.Transformer(8192, 1024, 8), nn.Flatten(0, 1))
    return model, words[:, :-1], words[:, 1:].reshape(-1)


KINDS: dict[str, tuple[Callable[[], tuple[Any, Any, Any]], bool]] = {
    "CNN, batch of 32": (ordinary_batch, True),
    "CNN, batch of 6": (cnn, True),
    "MLP, batch of 512": (mlp, True),
    "wide MLP, batch of 32 (the worst case)": (small_batch, False),
}

GPU_KINDS: dict[str, tuple[Callable[[], tuple[Any, Any, Any]], bool]] = {
    "CNN of 5 million parameters, 256 images of 64 × 64": (large_cnn, True),
    "transformer of 100 million parameters, 16 × 512 tokens": (transformer, True),
    **{kind: (make, False) for kind, (make, _) in KINDS.items()},
}


def training(make: Callable[[], tuple[Any, Any, Any]], guarded: bool, device: str) -> Iterator[None]:
    torch.manual_seed(0)
    model, x, y = make()
    model, x, y = model.to(device), x.to(device), y.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    if guarded:
        unstuck.guard(optimizer)
    while True:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        yield


def block(steps: Iterator[None], device: str) -> float:
    """Seconds a step."""
    clock = time.perf_counter if device == "cuda" else time.thread_time
    began = clock()
    for _ in range(BLOCK_STEPS):
        next(steps)
    if device == "cuda":
        torch.cuda.synchronize()
    return (clock() - began) / BLOCK_STEPS


def ratio(make: Callable[[], tuple[Any, Any, Any]], pairs: int, device: str) -> tuple[Interval, float]:
    """How much longer a guarded step takes, as a share; and how long one takes without."""
    both = {guarded: training(make, guarded, device) for guarded in (True, False)}
    for steps in both.values():
        for _ in range(2 * BLOCK_STEPS):
            next(steps)
    shares, plain = [], []
    for _ in range(pairs):
        took = {guarded: block(both[guarded], device) for guarded in random.sample((True, False), 2)}
        shares.append(took[True] / took[False] - 1)
        plain.append(took[False])
    return interval(shares), sum(plain) / len(plain)


def main() -> int:
    device = "cuda" if "--gpu" in sys.argv else "cpu"
    pairs = next((int(word) for word in sys.argv[1:] if word.isdigit()), 100)
    torch.set_num_threads(1)
    over = 0
    print("| training | guarded (95 % interval) | may cost |\n|---|---|---|", flush=True)
    for kind, (make, limited) in (GPU_KINDS if device == "cuda" else KINDS).items():
        more, step = ratio(make, pairs, device)
        over += limited and more.mean > LIMIT
        measured = f"× {1 + more.mean:.4f} ({1 + more.low:.4f}–{1 + more.high:.4f})"
        print(
            f"| {kind}, steps of {step * 1e3:.1f} ms | {measured} | {f'≤ × {1 + LIMIT:g}' if limited else ''} |",
            flush=True,
        )
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
