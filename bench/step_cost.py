"""What the recorder costs in a training step: the same training with and without hooks, block by block in one process.

The interval is over fresh processes: where code and data happen to lie makes a hook dearer or cheaper by microseconds.
What is done now and then is done at certain numbers of steps: means are taken by how many came since one was sampled,
without the slowest fifth of these (other processes), and then over all numbers. `always` leaves out steps that are
sampled and those before them, at whose end that is prepared; `whole` is over all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

from bench.stats import Interval, interval

BLOCKS = 120  # pairs of blocks a process


@dataclass(frozen=True)
class Process:
    """Means of one process, in seconds."""

    always: float
    """That a step takes longer with hooks, where nothing is sampled;"""
    whole: float
    """of all."""
    plain: float
    """A step without hooks."""


def per_step(processes: int) -> tuple[Interval, Interval, float]:
    """Seconds a step costs more with the recorder: ordinary steps, all steps; and how long a step takes without."""
    found = [_process("small") for _ in range(processes)]
    return interval([p.always for p in found]), interval([p.whole for p in found]), _mean([p.plain for p in found])


def per_batch(processes: int) -> Interval:
    """Seconds that fetching a batch of 32 costs more with its samples noted: in a worker, or in main without any."""
    return interval([_process("fetch").always for _ in range(processes)])


def ratio(processes: int, milliseconds: int) -> tuple[Interval, float]:
    """How many times as long such a step takes with the recorder, sampled steps included; less one."""
    found = [_process(f"{milliseconds} ms", BLOCKS // 3) for _ in range(processes)]
    return interval([p.whole / p.plain for p in found]), _mean([p.plain for p in found])


def _process(kind: str, blocks: int = BLOCKS) -> Process:
    words = [sys.executable, "-m", "bench.twins", kind, str(blocks)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    pairs = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True, env=env).stdout)
    plain = _kept([step for pair in pairs for step in pair.pop("plain")])
    by_number: dict[str, list[float]] = {}
    for pair in pairs:
        for number, steps in pair.items():
            by_number.setdefault(number, []).extend(steps)
    more = {number: (_kept(steps) - plain, len(steps)) for number, steps in by_number.items()}
    ordinary = [more[number] for number in more if number.startswith("ordinary")]
    return Process(_weighted(ordinary or list(more.values())), _weighted(list(more.values())), plain)


def _weighted(means: list[tuple[float, int]]) -> float:
    return sum(mean * count for mean, count in means) / sum(count for _, count in means)


def _kept(seconds: list[float]) -> float:
    return _mean(sorted(seconds)[: max(1, len(seconds) * 4 // 5)])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
