"""One reading of every thread of a process: state, processor time, switches, and the system call it is in."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from . import proc
from .proc import Trouble
from .syscalls import Call, parse_call

_RAN = re.compile(r"^se\.exec_start\s*:\s*([\d.]+)", re.MULTILINE)
_SWITCHES = re.compile(r"voluntary_ctxt_switches:\s+(\d+)")


@dataclass(frozen=True, slots=True)
class ThreadReading:
    tid: int
    name: str
    state: str
    cpu: float
    switches: int
    channel: str
    call: Call | None
    """None where the kernel would not say."""
    idle: float | None = None
    """Seconds since it was last on a processor; None where that was not asked, or the kernel does not say."""


def read_threads(pid: int, trouble: Trouble, now: float | None = None) -> tuple[ThreadReading, ...]:
    """The main thread first. `now`: the scheduler's clock, where the idle times are wanted."""
    try:
        tids = proc.numbers(f"/proc/{pid}/task")
    except OSError:
        return ()
    tids.sort(key=lambda tid: tid != pid)
    found = (_read_thread(pid, tid, trouble, now) for tid in tids)
    return tuple(reading for reading in found if reading is not None)


def _read_thread(pid: int, tid: int, trouble: Trouble, now: float | None) -> ThreadReading | None:
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
        idle=None if now is None else _idle(folder, now),
    )


def scheduler_clock() -> float | None:
    """Seconds on the clock by which the kernel notes when a thread last ran; None where it keeps that to itself.

    That clock begins anywhere; but we run now, so what it notes of us is the present."""
    return ran_at(_brief("/proc/thread-self/sched"))


def ran_at(sched: str) -> float | None:
    """When the thread last ran, from the text of its `sched` file."""
    found = _RAN.search(sched)
    return float(found[1]) / 1000 if found else None


def _idle(folder: str, now: float) -> float | None:
    ran = ran_at(_brief(f"{folder}/sched"))
    return None if ran is None else max(0.0, now - ran)


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
