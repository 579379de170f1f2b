"""Whether anything moved between the looks: processor time, switches, bytes, of a thread, a process, all the others."""

from __future__ import annotations

from itertools import pairwise

from unstuck.attach.inferred import seat_of
from unstuck.model import Frame, Look, Process, Thread
from unstuck.rules.hang.waiting import is_housekeeping, process_of
from unstuck.rules.hang.work import BUSY_SHARE

AT_WORK = 0.05
"""Share of a core that means that a process is doing something."""
TURNS = 2
"""So often a loop must be seen going round."""
RECENT = 5.0
"""Seconds of looks over which a share is taken: what was longer ago says nothing of now."""


def recent(looks: tuple[Look, ...]) -> tuple[Look, ...]:
    return tuple(look for look in looks if look.at >= looks[-1].at - RECENT)


def share_of(looks: tuple[Look, ...], pid: int, tid: int | None = None) -> float | None:
    """Cores that a thread, or a whole process, used lately; None where the looks are too close together."""
    late = recent(looks)
    first, last = (process_of(look, pid) for look in (late[0], late[-1]))
    passed = late[-1].at - late[0].at
    if first is None or last is None or passed < 0.1:
        return None
    used = [sum(t.cpu for t in p.threads if tid is None or t.tid == tid) for p in (first, last)]
    return (used[1] - used[0]) / passed


def busy(looks: tuple[Look, ...], process: Process, thread: Thread | None) -> bool:
    """It had a good share of a core; from one look, by its state."""
    if thread is None:
        return False
    share = share_of(looks, process.pid, thread.tid)
    running = thread.wait is not None and thread.wait.kind == "running"
    return running if share is None else share >= BUSY_SHARE or (running and share >= AT_WORK)


def others_move(looks: tuple[Look, ...], trail: tuple[Process, ...], waiting: Thread | None) -> bool:
    """Something else of the run moved since the first look, for which the last one of the trail may be waiting.

    Another thread of its own, or a process that is not on the trail; but no idle worker or helper, which wake now and
    then by habit."""
    first, last = looks[0], looks[-1]
    apart = {process.pid for process in trail[:-1]}
    culprit = trail[-1].pid
    for process in last.processes:
        if process.pid in apart or process.role == "helper" or _idle_worker(process):
            continue
        before = process_of(first, process.pid)
        if before is None or before.io_bytes != process.io_bytes:
            return True
        skip = waiting.tid if waiting is not None and process.pid == culprit else None
        threads = [t for t in process.threads if t.tid != skip and not is_housekeeping(t)]
        if any(_ran(before, thread) for thread in threads):
            return True
    return False


def _ran(before: Process, thread: Thread) -> bool:
    earlier = next((t for t in before.threads if t.tid == thread.tid), None)
    return earlier is None or earlier.switches != thread.switches or earlier.cpu != thread.cpu


def _idle_worker(process: Process) -> bool:
    return process.role == "worker" and not seat_of(process.main_thread).fetching


def turns_in_vain(looks: tuple[Look, ...], pid: int, thread: Thread | None) -> bool:
    """A loop that goes round again when its `try` failed is seen going round: each turn is a failure.

    The thread is in the loop's own lines, not in one long call from it, and was found at an earlier line than before,
    or woken from the loop's own sleep, again and again."""
    own = _own_frame(thread)
    if own is None or thread is None or not tries_again(thread):
        return False
    seen = []
    for look in looks:
        process = process_of(look, pid)
        again = next((t for t in process.threads if t.tid == thread.tid), None) if process else None
        frame = _own_frame(again)
        if again is None or frame is None or (frame.file, frame.function) != (own.file, own.function):
            return False
        seen.append((frame, again.switches))
    back = sum(later.line < earlier.line for (earlier, _), (later, _) in pairwise(seen))
    sleeps = all("sleep(" in frame.code for frame, _ in seen)
    return back >= TURNS or (sleeps and seen[-1][1] - seen[0][1] >= TURNS)


def tries_again(thread: Thread | None) -> bool:
    """It is in a loop's own lines that goes round again when its `try` failed."""
    own = _own_frame(thread)
    return own is not None and bool(own.tries)


def _own_frame(thread: Thread | None) -> Frame | None:
    """Innermost frame of the user's code."""
    return next((frame for frame in thread.frames if frame.user), None) if thread is not None else None
