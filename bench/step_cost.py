"""What the recorder costs in a training step: the same training twice, in two processes that take turns on one core.

Each process keeps its own warm interpreter, as a real run does; blocks of steps alternate in random order, so that what
else the machine does falls on both. The interval is over many pairs of fresh processes. Of each block the slowest fifth
of the steps is left out: other processes. Sampled steps (one in thirty-two) are counted for themselves: `always` is
without them, `whole` with their share.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from bench.stats import Interval, interval

BLOCKS = 12
"""Blocks of each of the two processes."""
COUNTED = 256
"""Steps of a block, after as many that are not counted as it takes to fill the caches again."""
SAMPLED = 32
EARNED = 6_000
"""Milliseconds of training after which what is spent in advance has been spent."""
FIRST = 13_000
"""Steps before the first block: past the first ones, all sampled, and the first losses, all read."""


@dataclass(frozen=True)
class Block:
    """Seconds of its ordinary steps, and of its sampled ones."""

    ordinary: list[float]
    sampled: list[float]

    @property
    def mean(self) -> float:
        return _kept(self.ordinary or self.sampled)

    @property
    def whole(self) -> float:
        """With the sampled steps, of which the slowest fifth is left out too."""
        return (self.mean * (SAMPLED - 1) + _kept(self.sampled)) / SAMPLED if self.sampled else self.mean


def _kept(seconds: list[float]) -> float:
    kept = sorted(seconds)[: max(1, len(seconds) * 4 // 5)]
    return sum(kept) / len(kept)


class Training:
    """A training in a process of its own, which makes steps when it is told to."""

    def __init__(self, kind: str, hooked: bool, first: int) -> None:
        words = [sys.executable, "-m", "bench.turns", kind, "hooked" if hooked else "plain", str(first)]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self._first = True

    def block(self, steps: int) -> Block:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._first:  # it has made its first steps
            self._process.stdout.readline()
            self._first = False
        print(steps, file=self._process.stdin, flush=True)
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return Block(told["ordinary"], told["sampled"])

    def __enter__(self) -> Training:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()


def per_step(rounds: int) -> tuple[Interval, Interval, float]:
    """Seconds a step costs more with the recorder: ordinary steps, all steps; and how long a step takes without."""
    found = [_round("small") for _ in range(rounds)]
    always = interval([_mean([h.mean - p.mean for h, p in each]) for each in found])
    whole = interval([_mean([h.whole - p.mean for h, p in each]) for each in found])
    return always, whole, _plain(found)


def per_batch(rounds: int) -> Interval:
    """Seconds that fetching a batch of 32 costs more with its samples noted: in a worker, or in main without any."""
    found = [_round("fetch", first=1000) for _ in range(rounds)]
    return interval([_mean([h.mean - p.mean for h, p in each]) for each in found])


def ratio(rounds: int, milliseconds: int) -> tuple[Interval, float]:
    """How many times as long such a step takes with the recorder, sampled steps included; less one."""
    found = [_round(f"{milliseconds} ms", counted=64, first=EARNED // milliseconds) for _ in range(rounds)]
    return interval([_mean([h.whole / p.mean - 1 for h, p in each]) for each in found]), _plain(found)


def _round(kind: str, counted: int = COUNTED, first: int = FIRST) -> list[tuple[Block, Block]]:
    """Two fresh processes: where their code and data happen to lie makes one of them quicker by some microseconds, so
    that only the mean over many such pairs says something."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})  # the two take turns on one core
    try:
        with Training(kind, True, first) as hooked, Training(kind, False, first) as plain:
            found = []
            for _ in range(BLOCKS):
                blocks = {each: each.block(counted) for each in random.sample([hooked, plain], 2)}
                found.append((blocks[hooked], blocks[plain]))
    finally:
        os.sched_setaffinity(0, before)
    return found


def _plain(found: list[list[tuple[Block, Block]]]) -> float:
    return _mean([plain.mean for each in found for _, plain in each])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
