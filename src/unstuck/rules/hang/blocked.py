"""On what a standstill is blocked: one answer each, so that one wait is not explained by two rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from unstuck.model import Case, Frame, Process, Thread
from unstuck.rules.hang import waiting
from unstuck.rules.hang.standstill import Standstill, standstills

Blockage = Literal["file-lock", "queue", "pipe", "collective", "fork", "lock", "input", "answer", "io", ""]


def blocked(case: Case, on: Blockage) -> Iterator[Standstill]:
    """Standstills that are certainly blocked on this."""
    return (still for still in standstills(case) if blocked_on(still) == on and still.certain)


def blocked_on(still: Standstill) -> Blockage:
    """The first that fits; what is more definite comes first."""
    thread, kind = still.thread, still.kind
    locked = kind in ("lock", "shared-lock")
    if kind == "file-lock":
        return "file-lock"
    if undrained(still) is not None:
        return "queue"
    if full_pipe(still) is not None:
        return "pipe"
    if waiting.collective_call(thread):
        return "collective"
    if lost_in_fork(still):
        return "fork"
    if locked and waiting.awaited(thread) == waiting.LOCK:
        return "lock" if kind == "shared-lock" or lock_name(thread) else ""
    if waiting.reads_input(thread):
        return "input"
    if locked or waiting.idle_event_loop(thread) or (kind == "pipe-read" and waiting.reads_queue(thread)):
        return "answer"
    if kind not in ("pipe-read", "pipe-write", "socket", "file", "poll") or waiting.in_event_loop(thread):
        return ""
    return "" if kind == "pipe-write" and waiting.reads_queue(thread) else "io"


# --- pipes and queues ----------------------------------------------------------------------------------------


def full_pipe(still: Standstill) -> tuple[Process, Process] | None:
    """The writer at a full pipe, and its parent, the only one who could read it, which waits for the writer."""
    for writer in reversed(still.trail):
        for thread in writer.threads:
            wait = thread.wait
            if wait is None or wait.kind != "pipe-write" or waiting.feeds_queue(thread):
                continue
            readers = [p for pid in wait.others if (p := still.look.process(pid))]
            if len(readers) == 1 and readers[0].pid == writer.ppid and _waits_on(readers[0], writer):
                return writer, readers[0]
    return None


def _waits_on(reader: Process, writer: Process) -> bool:
    """The reader's own wait is for the writer: its end, or its reading of another pipe."""
    waits = [t.wait for t in reader.threads if t.wait and t.wait.kind in ("child", "pipe-write", "pipe-read")]
    return any(writer.pid in wait.others for wait in waits)


def undrained(still: Standstill) -> tuple[Process, Process] | None:
    """A process whose queue still holds data, and the one that waits for it to end: another one, or itself, where the
    interpreter waits at its exit for its own queue."""
    for child in reversed(still.trail):
        if not any(map(_stuck_feeder, child.threads)):
            continue
        main = child.main_thread
        if main and waiting.waits_in(main, "multiprocessing/queues.py", "_finalize_join") and len(still.trail) == 1:
            return child, child
        joiner = next((process for process in still.look.processes if _joins(process, child)), None)
        if joiner is not None:
            return child, joiner
    return None


def _stuck_feeder(thread: Thread) -> bool:
    """It cannot write: the pipe is full, or another process's feeder, stuck in the same pipe, has the queue's lock."""
    return thread.wait is not None and thread.wait.kind in ("pipe-write", "shared-lock") and waiting.feeds_queue(thread)


def _joins(process: Process, child: Process) -> bool:
    wait = process.main_thread.wait if process.main_thread else None
    return wait is not None and wait.kind == "child" and child.pid in wait.others


# --- locks ---------------------------------------------------------------------------------------------------


def lock_name(thread: Thread) -> str:
    """The expression of the lock that is being taken, from the innermost frame that says so."""
    for frame in thread.frames[:4]:
        if frame.takes:
            return frame.takes
        if frame.user:
            break
    return ""


def same_lock(one: str, other: str) -> bool:
    """`self.lock` here and `store.lock` there: the same last name may be the same lock."""
    return bool(one) and bool(other) and one.rpartition(".")[2] == other.rpartition(".")[2]


def holding_frame(thread: Thread, name: str, skip: int = 0) -> Frame | None:
    """Frame of the thread that lies inside a `with` of that lock."""
    return next((f for f in thread.frames[skip:] if any(same_lock(held, name) for held in f.holds)), None)


def lost_in_fork(still: Standstill) -> bool:
    """Forked, alone, and waiting in private memory for what it cannot have taken itself."""
    process, thread = still.process, still.thread
    if not process.forked or still.kind != "lock" or (thread.wait and thread.wait.timed):
        return False
    if any(t.tid != thread.tid for t in own_threads(process)):
        return False
    if waiting.awaited(thread) == waiting.LOCK:
        return not holding_frame(thread, lock_name(thread), skip=1)
    parent = still.look.process(process.ppid)
    return parent is not None and any(t is not parent.main_thread for t in own_threads(parent))


def own_threads(process: Process) -> list[Thread]:
    """Python threads that run the user's code, or may hold something of it."""
    return [t for t in process.threads if t.python and not waiting.is_housekeeping(t) and not waiting.feeds_queue(t)]
