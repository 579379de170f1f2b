"""One of two trainings that take turns: `python -m bench.turns KIND hooked|plain FIRST`, then a line a block."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

WARM = 48
WIDTHS = {"1 ms": 300, "3 ms": 620, "10 ms": 1250}
"""Of a model of three layers, at which a step takes about so long on one core."""


def main() -> None:
    kind, mode, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        if mode == "hooked":
            from unstuck.recorder import start

            start.start(folder)
        steps = small_steps(32 if kind == "fetch" else 1) if kind in ("small", "fetch") else wide_steps(WIDTHS[kind])
        for _ in range(first):
            next(steps)
        if mode == "hooked":
            keep_what_is_measured(kind)
        print("ready", flush=True)
        for line in sys.stdin:
            print(json.dumps(block(steps, int(line), mode == "hooked")), flush=True)


def block(steps: Iterator[None], counted: int, hooked: bool) -> dict[str, list[float]]:
    state, full = [0], 0
    if hooked:
        from unstuck.recorder import flight

        state, full = flight.state, flight.FULL
    found: dict[str, list[float]] = {"ordinary": [], "sampled": []}
    clock = time.perf_counter_ns
    for _ in range(WARM):
        next(steps)
    before = clock()
    for _ in range(counted):
        sampled = state[full]
        next(steps)
        now = clock()
        found["sampled" if sampled else "ordinary"].append((now - before) / 1e9)
        before = now
    return found


def keep_what_is_measured(kind: str) -> None:
    """Noting samples is measured for itself: workers do it, or main where there are none."""
    from unstuck.recorder import guard, start

    if kind != "fetch":
        guard.remove("fetch")
        return
    guard.remove_all()
    name = "torch.utils.data._utils.fetch"
    start.install_seam(name, sys.modules[name])


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


def wide_steps(width: int) -> Iterator[None]:
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


if __name__ == "__main__":
    main()
