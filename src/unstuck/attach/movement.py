"""Whether anything moved between the looks: processor time, switches, bytes; of a thread, a process, all the others."""

from __future__ import annotations

from itertools import pairwise

from unstuck.attach.inferred import loader_work
from unstuck.model import Look, Process, Thread
from unstuck.rules.hang.deadlock import thread_again
from unstuck.rules.hang.waiting import is_housekeeping
from unstuck.rules.hang.work import BUSY_SHARE

WORKING_SHARE = 0.05  # of a core means that a process is doing something
MIN_TURNS = 2  # a loop must be seen going round this often
RECENT_SECONDS = 5.0  # a share is taken over these: what was longer ago says nothing about now


def share_of(looks: tuple[Look, ...], pid: int, tid: int | None = None) -> float | None:
    """Cores that a thread, or a whole process, used lately; None where the looks are too close together."""
    recent = [look for look in looks if look.at >= looks[-1].at - RECENT_SECONDS]
    first, last = recent[0].process(pid), recent[-1].process(pid)
    passed = recent[-1].at - recent[0].at
    if first is None or last is None or passed < 0.1:
        return None
    before, after = (sum(t.cpu for t in p.threads if tid is None or t.tid == tid) for p in (first, last))
    return (after - before) / passed


def computes(looks: tuple[Look, ...], process: Process, thread: Thread | None) -> bool:
    """It had a good share of a core; from one look, by its state."""
    if thread is None:
        return False
    share = share_of(looks, process.pid, thread.tid)
    running = thread.wait is not None and thread.wait.kind == "running"
    return running if share is None else share >= BUSY_SHARE or (running and share >= WORKING_SHARE)


def others_move(looks: tuple[Look, ...], trail: tuple[Process, ...], waiting: Thread | None) -> bool:
    """Something else of the run moved since the first look, for which the last one of the trail may be waiting.

    Another thread of its own, or a process that is not on the trail; but no idle worker or helper, which wake now and
    then by habit."""
    before_it = {process.pid for process in trail[:-1]}
    for process in looks[-1].processes:
        idle = process.role == "worker" and not loader_work(process.main_thread).fetching
        if process.pid in before_it or process.role == "helper" or idle:
            continue
        before = looks[0].process(process.pid)
        if before is None or before.io_bytes != process.io_bytes:
            return True
        own = waiting.tid if waiting is not None and process.pid == trail[-1].pid else None
        threads = [t for t in process.threads if t.tid != own and not is_housekeeping(t)]
        if any(_ran(thread_again(looks[0], process.pid, thread.tid), thread) for thread in threads):
            return True
    return False


def _ran(before: Thread | None, thread: Thread) -> bool:
    return before is None or (before.switches, before.cpu) != (thread.switches, thread.cpu)


def turns_in_vain(looks: tuple[Look, ...], process: Process, thread: Thread | None) -> bool:
    """A loop that goes round again when its `try` failed is seen going round: each turn is a failure.

    The thread is in the loop's own lines, not in one long call from it, and was found at an earlier line than before,
    or woken from the loop's own sleep, again and again."""
    own = thread.user_frame if thread else None
    if own is None or thread is None or not own.tries:
        return False
    turns = []
    for look in looks:
        again = thread_again(look, process.pid, thread.tid)
        frame = again.user_frame if again else None
        if again is None or frame is None or (frame.file, frame.function) != (own.file, own.function):
            return False
        turns.append((frame, again.switches))
    back = sum(later.line < earlier.line for (earlier, _), (later, _) in pairwise(turns))
    sleeps = all("sleep(" in frame.code for frame, _ in turns)
    return back >= MIN_TURNS or (sleeps and turns[-1][1] - turns[0][1] >= MIN_TURNS)
