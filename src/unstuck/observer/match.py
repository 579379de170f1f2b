"""Which kernel thread is which Python thread, where the interpreter does not keep the kernel's number."""

from __future__ import annotations

from collections.abc import Sequence

from .stacks import PythonThread
from .threads import ThreadReading

_LARGEST_STACK = 1 << 30


def match_threads(
    pid: int, readings: Sequence[ThreadReading], threads: Sequence[PythonThread]
) -> dict[int, PythonThread]:
    """Python threads by kernel thread; those that cannot be placed get negative keys.

    `threads` is newest first, so the last is the main one. A thread's ident is the address of its pthread,
    which lies at the top of its stack: the thread with the nearest stack pointer beneath it is the one.
    """
    tids = {reading.tid for reading in readings}
    found: dict[int, PythonThread] = {}
    unplaced: list[PythonThread] = []
    for thread in threads:
        if thread.tid in tids and thread.tid not in found:
            found[thread.tid] = thread
        else:
            unplaced.append(thread)
    if unplaced and unplaced[-1] is threads[-1] and pid in tids and pid not in found:
        found[pid] = unplaced.pop()
    stacks = {
        reading.tid: reading.call.stack
        for reading in readings
        if reading.tid not in found and reading.tid != pid and reading.call is not None and reading.call.stack
    }
    for number, thread in enumerate(unplaced):
        below = [
            (thread.ident - stack, tid) for tid, stack in stacks.items() if 0 < thread.ident - stack < _LARGEST_STACK
        ]
        if below:
            tid = min(below)[1]
            found[tid] = thread
            del stacks[tid]
        else:
            found[-1 - number] = thread
    return found
