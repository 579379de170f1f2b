"""Who keeps the processors busy that a process may run on: /proc/stat, and the delays of its threads."""

from __future__ import annotations

import os

from . import proc

TICKS = os.sysconf("SC_CLK_TCK")


def busy(pid: int) -> float:
    """Seconds that the processors it may run on have been busy since the machine was started, with anything."""
    try:
        mine = {f"cpu{number}" for number in os.sched_getaffinity(pid)}
    except OSError:
        return 0.0
    total = 0
    for line in proc.maybe("/proc/stat").splitlines():
        name, *fields = line.split()
        if name in mine:
            user, nice, system, _idle, _iowait, irq, soft, steal = (int(field) for field in fields[:8])
            total += user + nice + system + irq + soft + steal
    return total / TICKS


def delays(pid: int) -> tuple[float, float, dict[int, float]]:
    """Of a process: processor seconds, seconds its threads were ready without one, and the former by thread."""
    ran, ready, by_thread = 0.0, 0.0, {}
    try:
        tids = proc.numbers(f"/proc/{pid}/task")
    except OSError:
        return 0.0, 0.0, {}
    for tid in tids:
        words = proc.maybe(f"/proc/{pid}/task/{tid}/schedstat").split()
        if len(words) == 3:
            by_thread[tid] = int(words[0]) / 1e9
            ran += by_thread[tid]
            ready += int(words[1]) / 1e9
    return ran, ready, by_thread
