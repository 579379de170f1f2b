"""What the recorder costs in a training step: the same training with and without hooks, block by block in one process.

The interval is over fresh processes: where code and data happen to lie makes a hook dearer or cheaper by a microsecond
or two. Of each block the slowest fifth of the steps is left out: other processes. Sampled steps (one in thirty-two) are
counted for themselves: `always` is without them, `whole` with their share.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

from bench.stats import Interval, interval

BLOCKS = 60  # pairs of blocks a process
SAMPLED = 32


@dataclass(frozen=True)
class Process:
    """Means of one process, in seconds."""

    more: float
    """That an ordinary step takes longer with hooks."""
    sampled: float
    """That a sampled one does."""
    plain: float
    """A step without hooks."""

    @property
    def whole(self) -> float:
        return (self.more * (SAMPLED - 1) + self.sampled) / SAMPLED


def per_step(processes: int) -> tuple[Interval, Interval, float]:
    """Seconds a step costs more with the recorder: ordinary steps, all steps; and how long a step takes without."""
    found = [_process("small") for _ in range(processes)]
    return interval([p.more for p in found]), interval([p.whole for p in found]), _mean([p.plain for p in found])


def per_batch(processes: int) -> Interval:
    """Seconds that fetching a batch of 32 costs more with its samples noted: in a worker, or in main without any."""
    return interval([_process("fetch").more for _ in range(processes)])


def ratio(processes: int, milliseconds: int) -> tuple[Interval, float]:
    """How many times as long such a step takes with the recorder, sampled steps included; less one."""
    found = [_process(f"{milliseconds} ms", BLOCKS // 3) for _ in range(processes)]
    return interval([p.whole / p.plain for p in found]), _mean([p.plain for p in found])


def _process(kind: str, blocks: int = BLOCKS) -> Process:
    words = [sys.executable, "-m", "bench.twins", kind, str(blocks)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    pairs = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True, env=env).stdout)
    plain = _kept([step for pair in pairs for step in pair["plain"]])
    sampled = [step for pair in pairs for step in pair["sampled"]]
    differences = sorted(_kept(pair["ordinary"]) - _kept(pair["plain"]) for pair in pairs if pair["ordinary"])
    cut = len(differences) // 10
    more = _mean(differences[cut : len(differences) - cut]) if differences else _kept(sampled) - plain
    return Process(more, _kept(sampled) - plain if sampled else more, plain)


def _kept(seconds: list[float]) -> float:
    return _mean(sorted(seconds)[: max(1, len(seconds) * 4 // 5)])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
