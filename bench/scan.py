"""`unstuck.scan` compared with a plain pass of a DataLoader with as many workers, over four kinds of samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.stats import Interval, interval

WORKERS = 2
BATCH = 64


def workloads() -> dict[str, Any]:
    """Tiny samples, large ones, ones that cost processor time, ones that wait."""
    import torch

    class Samples:
        def __init__(self, count: int, give: Callable[[int], Any]) -> None:
            self.count, self.give = count, give

        def __len__(self) -> int:
            return self.count

        def __getitem__(self, index: int) -> Any:
            return self.give(index)

    table, labels = torch.randn(60_000, 10), torch.randint(0, 3, (60_000,))
    pictures = torch.randn(32, 3, 224, 224)

    def computed(index: int) -> Any:
        x = torch.full((3, 32, 32), 0.001 * index)
        for _ in range(40):
            x = torch.sin(x) + 0.001 * index
        return x, index % 5

    def waited(index: int) -> Any:
        time.sleep(0.002)
        return table[index], labels[index]

    return {
        "tiny samples": Samples(60_000, lambda index: (table[index], labels[index])),
        "large samples": Samples(1_500, lambda index: (pictures[index % 32] + index / 1e4, index % 4)),
        "samples that compute": Samples(4_000, computed),
        "samples that wait": Samples(2_000, waited),
    }


def ratios(rounds: int) -> Iterator[tuple[str, Interval, float]]:
    """What a scan takes more than the pass, as a share of it, in pairs; and the seconds of the pass."""
    import torch

    torch.set_num_threads(1)
    for name, dataset in workloads().items():
        plain, more = [], []
        for turn in range(rounds):
            pair = {kind: _timed(kind, dataset) for kind in (("pass", "scan") if turn % 2 else ("scan", "pass"))}
            plain.append(pair["pass"])
            more.append(pair["scan"] / pair["pass"] - 1)
        yield name, interval(more), sorted(plain)[len(plain) // 2]


def _timed(kind: str, dataset: Any) -> float:
    from torch.utils.data import DataLoader

    import unstuck

    began = time.perf_counter()
    if kind == "scan":
        unstuck.scan(dataset, workers=WORKERS, progress=False)
    else:
        for _ in DataLoader(dataset, batch_size=BATCH, num_workers=WORKERS):
            pass
    return time.perf_counter() - began
