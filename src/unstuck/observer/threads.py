"""One reading of every thread of a process: state, processor time, system call, and the Python thread that it is."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import proc
from .proc import Trouble
from .stacks import PythonThread
from .syscalls import Call, parse_call

_RAN = re.compile(r"^se\.exec_start\s*:\s*([\d.]+)", re.MULTILINE)
_SWITCHES = re.compile(r"voluntary_ctxt_switches:\s+(\d+)")
_LARGEST_STACK_BYTES = 1 << 30
Clock = Callable[[int], float | None]


@dataclass(frozen=True, slots=True)
class ThreadReading:
    tid: int
    name: str
    state: str
    cpu: float
    switches: int
    channel: str
    call: Call | None  # None where the kernel would not say
    idle: float | None = None  # seconds since it was last on a processor, where that was read


def processor_clock(processor: int) -> float | None:
    """The present on the clock by which the kernel notes when a thread last ran; None where it keeps that to itself, or
    we may not run there.

    Every processor has its own, which does not count what interrupts and the host took from it: they drift seconds
    apart. So we go where the thread ran and see what is noted of ourselves."""
    try:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {processor})
    except OSError:
        return None
    try:
        return ran_at(_brief("/proc/thread-self/sched"))
    finally:
        os.sched_setaffinity(0, before)


def read_threads(pid: int, trouble: Trouble, clock: Clock | None = None) -> tuple[ThreadReading, ...]:
    """The main thread first. `clock`: of each processor, where the idle times are wanted."""
    tids = sorted(proc.threads(pid), key=lambda tid: tid != pid)
    readings = (_read_thread(pid, tid, trouble, clock) for tid in tids)
    return tuple(reading for reading in readings if reading is not None)


def _read_thread(pid: int, tid: int, trouble: Trouble, clock: Clock | None) -> ThreadReading | None:
    stat = proc.stat(pid, tid)
    if stat is None:
        return None
    folder = f"/proc/{pid}/task/{tid}"
    channel = _brief(f"{folder}/wchan").strip()
    return ThreadReading(
        tid=tid,
        name=stat.name,
        state=stat.state,
        cpu=stat.cpu,
        switches=switches_in(_brief(f"{folder}/status")),
        channel="" if channel == "0" else channel,
        call=None if stat.state in "ZX" else _read_call(pid, folder, trouble),
        idle=None if clock is None else _idle(folder, clock(stat.processor)),
    )


def ran_at(sched: str) -> float | None:
    """When the thread last ran, from the text of its `sched` file."""
    ran = _RAN.search(sched)
    return float(ran[1]) / 1000 if ran else None


def _idle(folder: str, now: float | None) -> float | None:
    ran = ran_at(_brief(f"{folder}/sched"))
    return None if now is None or not ran else max(0.0, now - ran)


def _read_call(pid: int, folder: str, trouble: Trouble) -> Call | None:
    try:
        return parse_call(proc.brief(f"{folder}/syscall"))
    except PermissionError:
        trouble.note(
            "syscall",
            f"the kernel will not say what process {pid} waits for (permission denied): "
            "look as its owner or as root (`sudo`)",
        )
    except FileNotFoundError:
        if os.path.exists(folder):
            trouble.note("no-syscall", "this kernel does not say what threads wait for (no /proc/PID/syscall)")
    except (OSError, ValueError):
        pass
    return None


def _brief(path: str) -> str:
    try:
        return proc.brief(path)
    except OSError:
        return ""


def switches_in(status: str) -> int:
    """Voluntary and involuntary context switches in the text of a `status` file."""
    return sum(int(count) for count in _SWITCHES.findall(status))


def match_threads(
    pid: int, readings: Sequence[ThreadReading], threads: Sequence[PythonThread]
) -> dict[int, PythonThread]:
    """Python threads by kernel thread, also where the interpreter does not keep the kernel's number; those that cannot
    be placed get negative keys.

    `threads` is newest first, so the last is the main one. A thread's ident is the address of its pthread,
    which lies at the top of its stack: the thread with the nearest stack pointer beneath it is the one.
    """
    tids = {reading.tid for reading in readings}
    placed: dict[int, PythonThread] = {}
    unplaced: list[PythonThread] = []
    for thread in threads:
        if thread.tid in tids and thread.tid not in placed:
            placed[thread.tid] = thread
        else:
            unplaced.append(thread)
    if unplaced and unplaced[-1] is threads[-1] and pid in tids and pid not in placed:
        placed[pid] = unplaced.pop()
    stacks = {
        reading.tid: reading.call.stack
        for reading in readings
        if reading.tid not in placed and reading.tid != pid and reading.call is not None and reading.call.stack
    }
    for number, thread in enumerate(unplaced):
        depths = {tid: thread.ident - stack for tid, stack in stacks.items()}
        beneath = {tid: depth for tid, depth in depths.items() if 0 < depth < _LARGEST_STACK_BYTES}
        tid = min(beneath, key=lambda tid: (beneath[tid], tid), default=-1 - number)
        placed[tid] = thread
        stacks.pop(tid, None)
    return placed
