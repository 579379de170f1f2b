"""On what a standstill is blocked: one answer each, so that one wait is not explained by two rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from unstuck.model import Case, Collective, Process, Thread
from unstuck.rules.hang import chain, waiting
from unstuck.rules.hang.chain import Link
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.rank_positions import in_backward

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
    if waiting.collective_call(thread) or gradients_call(still) is not None:
        return "collective"
    if lost_in_fork(still):
        return "fork"
    if locked and waiting.awaited(thread) == waiting.LOCK:
        return "lock" if kind == "shared-lock" or waiting.lock_name(thread) else ""
    if waiting.reads_input(thread):
        return "input"
    if locked or waiting.idle_event_loop(thread) or (kind == "pipe-read" and waiting.reads_queue(thread)):
        return "answer"
    if kind not in ("pipe-read", "pipe-write", "socket", "file", "poll") or waiting.in_event_loop(thread):
        return ""
    return "" if kind == "pipe-write" and waiting.reads_queue(thread) else "io"


def gradients_call(still: Standstill) -> Collective | None:
    """The averaging of gradients by DistributedDataParallel, which waits inside a backward pass."""
    flight = still.case.flight_of(still.process.pid)
    last = flight.collectives[-1] if flight is not None and flight.collectives else None
    return last if last is not None and last.pending and in_backward(still.thread) else None


# --- pipes and queues ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FullPipe:
    writer: Process
    thread: Thread
    reader: Process | None
    """Who could read it, another process if there is one; None: only a program outside this run."""


def full_pipe(still: Standstill) -> FullPipe | None:
    """A full pipe on the way, whose readers all wait for something else or cannot be seen."""
    for process in reversed(still.trail):
        for thread in process.threads:
            if chain.unread(still.look, Link(process, thread)):
                return FullPipe(process, thread, chain.readers(still.look, Link(process, thread))[0])
    thread, wait = still.thread, still.thread.wait
    unseen = wait is not None and wait.kind == "pipe-write" and not (wait.others or wait.also_self)
    return FullPipe(still.process, thread, None) if unseen and not waiting.feeds_queue(thread) else None


def undrained(still: Standstill) -> tuple[Process, Process] | None:
    """A process whose queue still holds data, and the one that waits for it to end: another one, or itself, where the
    interpreter waits at its exit for its own queue."""
    for child in reversed(still.trail):
        if not any(stuck_feeder(t) or _stuck_put(t) for t in child.threads):
            continue
        main = child.main_thread
        if main and waiting.waits_in(main, "multiprocessing/queues.py", "_finalize_join") and len(still.trail) == 1:
            return child, child
        joiner = next((process for process in still.look.processes if _joins(process, child)), None)
        if joiner is not None:
            return child, joiner
    return None


def _stuck_put(thread: Thread) -> bool:
    """It puts into a queue between processes that has reached its `maxsize`."""
    return thread.wait is not None and thread.wait.kind == "shared-lock" and waiting.awaited(thread) == waiting.PUT


def stuck_feeder(thread: Thread) -> bool:
    """It cannot write: the pipe is full, or another process's feeder, stuck in the same pipe, has the queue's lock."""
    return thread.wait is not None and thread.wait.kind in ("pipe-write", "shared-lock") and waiting.feeds_queue(thread)


def _joins(process: Process, child: Process) -> bool:
    wait = process.main_thread.wait if process.main_thread else None
    return wait is not None and wait.kind == "child" and child.pid in wait.others


# --- locks ---------------------------------------------------------------------------------------------------


def lost_in_fork(still: Standstill) -> bool:
    """Forked, alone, and waiting in private memory for what it cannot have taken itself."""
    process, thread = still.process, still.thread
    if not process.forked or still.kind != "lock" or (thread.wait and thread.wait.timed):
        return False
    if any(t.tid != thread.tid for t in own_threads(process)):
        return False
    if native_wait(thread):
        return len(process.threads) == 1
    if waiting.awaited(thread) == waiting.LOCK:
        return not waiting.holding_frame(thread, waiting.lock_name(thread), skip=1)
    parent = still.look.process(process.ppid)
    return parent is not None and any(t is not parent.main_thread for t in own_threads(parent))


def native_wait(thread: Thread) -> bool:
    """It waits inside a library's native code: no line of Python takes a lock here."""
    return waiting.awaited(thread) == waiting.LOCK and not waiting.lock_name(thread)


def own_threads(process: Process) -> list[Thread]:
    """Python threads that run the user's code, or may hold something of it."""
    return [t for t in process.threads if t.python and not waiting.is_housekeeping(t) and not waiting.feeds_queue(t)]
