"""How much of the processors others used meanwhile: on a machine that is not ours alone, rounds they disturbed are
measured again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import psutil

CALM = 0.05  # of the processors: what a machine uses that does nothing
Round = TypeVar("Round")


def calm_rounds(measure: Callable[[], Round], wanted: int, seconds: float) -> tuple[list[Round], float]:
    """So many rounds in which others were calm, or the calmest there were in this time; and how busy they were in them
    at most."""
    until = time.monotonic() + seconds
    found: list[tuple[float, Round]] = []
    while sum(busy <= CALM for busy, _ in found) < wanted and (time.monotonic() < until or len(found) < wanted):
        others = _others()
        result = measure()
        found.append((next(others), result))
    found.sort(key=lambda pair: pair[0])
    return [result for _, result in found[:wanted]], found[wanted - 1][0]


def _others() -> Iterator[float]:
    """Their share of all processors between the call and `next`."""
    began, busy, own = time.monotonic(), _busy(), _own()

    def share() -> Iterator[float]:
        used = _busy() - busy - (_own() - own)
        yield max(0.0, used / (time.monotonic() - began) / (os.cpu_count() or 1))

    return share()


def _busy() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def _own() -> float:
    """Seconds of this process and of those below it that live."""
    this = psutil.Process()
    total = 0.0
    for process in (this, *this.children(recursive=True)):
        try:
            total += sum(process.cpu_times()[:2])
        except psutil.Error:
            continue
    return total
