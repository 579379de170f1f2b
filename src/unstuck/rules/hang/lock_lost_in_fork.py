"""lock-lost-in-fork: a forked worker waits for something only a thread of its parent could give.

What it sees
    A process that was forked waits, without a time limit, on a lock (or a future, queue, event) in its own private
    memory, and no thread of its own can release it. The fork copied the lock as it was, held, but not the
    thread that held it.

Why it matters
    Only the forking thread exists in a forked child. A lock that another thread held at that instant stays held
    for ever in the child; a pool's or consumer's thread is simply not there.

Evidence
    The line that waits, how many Python threads the worker has, the threads of the parent that hold or serve the
    same thing, and the semaphore's value in both processes where it can be read.

Fix
    Make the lock (or pool) anew in the child: `os.register_at_fork(after_in_child=…)`, create it lazily in the
    worker, or use the start method spawn.

When it is wrong
    A lock taken twice by the worker's own single thread looks alike; it is told apart by the `with` around it.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Frame, Process, Thread, Where
from unstuck.rules.hang.standstill import Standstill, process_of, seat, standstills
from unstuck.rules.hang.waiting import LOCK, awaited, holding_frame, lock_name
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who

_OWN_THREADS = ("multiprocessing/queues.py", "multiprocessing/resource_sharer.py", "tqdm/_monitor.py")


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        if not lost_in_fork(still) or not still.certain:
            continue
        parent = process_of(still.look, still.process.ppid)
        name, word = lock_name(still.thread), awaited(still.thread)
        holder = _holder(parent, name)
        what = f"the lock `{name}`" if word == LOCK and name else "a lock" if word == LOCK else f"a {word}"
        yield RULE.finding(
            severity="error",
            confidence=still.confidence if holder or word != LOCK else min(still.confidence, 0.9),
            title=f"{who(still.process)} waits for {what} that was lost in the fork",
            evidence=(
                f"{who(still.process)} has waited at {place(still.frame)} for {still.lasting}, without a time limit",
                "it was forked and has one Python thread, the one that waits: nobody in it can end the wait",
                *_values(still),
                *_parent_lines(parent, holder),
            ),
            where=still.where(),
            fix=Fix(_fix(word, name)),
            seen_by="kernel",
            also=_also(still, parent, holder),
        )


def lost_in_fork(still: Standstill) -> bool:
    """Forked, alone, and waiting in private memory for what it cannot have taken itself."""
    process, thread = still.process, still.thread
    if not process.forked or still.kind != "lock" or (thread.wait and thread.wait.timed):
        return False
    if _companions(process, thread):
        return False
    name = lock_name(thread)
    if awaited(thread) == LOCK and holding_frame(thread, name, skip=1):
        return False
    parent = process_of(still.look, process.ppid)
    if awaited(thread) == LOCK:
        return True
    return parent is not None and bool(_helpers(parent))


def _companions(process: Process, waiting: Thread) -> list[Thread]:
    return [t for t in process.threads if t.python and t.tid != waiting.tid and not _infrastructure(t)]


def _infrastructure(thread: Thread) -> bool:
    """Threads of multiprocessing and progress bars, which hold nothing of the user's."""
    return any(f.file.endswith(_OWN_THREADS) for f in thread.frames) and not any(f.user for f in thread.frames)


def _helpers(parent: Process) -> list[Thread]:
    return [t for t in parent.threads[1:] if t.python and not _infrastructure(t)]


def _holder(parent: Process | None, name: str) -> tuple[Thread, Frame] | None:
    """Thread of the parent that is inside a `with` of a lock of that name."""
    for thread in _helpers(parent) if parent else ():
        frame = holding_frame(thread, name) or next(
            (f for f in thread.frames if f.takes and f.takes.rpartition(".")[2] == name.rpartition(".")[2] and name),
            None,
        )
        if frame is not None:
            return thread, frame
    return None


def _values(still: Standstill) -> list[str]:
    wait = still.thread.wait
    if wait is None or wait.value is None:
        return []
    beside = "" if wait.parent_value is None else f"; in the parent, at the same address, it is {wait.parent_value} now"
    return [
        f"its semaphore stands at {wait.value} (taken){beside}"
        if wait.value == 0
        else f"its semaphore stands at {wait.value}{beside}"
    ]


def _parent_lines(parent: Process | None, holder: tuple[Thread, Frame] | None) -> list[str]:
    if parent is None:
        return ["the parent it was forked from is gone"]
    if holder is not None:
        thread, frame = holder
        return [f"in the parent, thread {thread.name or thread.tid} takes that lock at {place(frame)}"]
    helpers = _helpers(parent)
    if not helpers:
        return ["the parent has no other thread now; the one that held it has ended since"]
    names = ", ".join(f"{t.name or t.tid} ({place(seat(t))})" for t in helpers[:3])
    return [f"threads of the parent that the fork did not copy: {names}"]


def _fix(word: str, name: str) -> str:
    if word == LOCK:
        made = f"`{name}`" if name else "the lock"
        return (
            f"Make {made} anew in each worker: os.register_at_fork(after_in_child=…) or create it on first use in the "
            "worker; or start workers with multiprocessing_context='spawn'."
        )
    return (
        "Create the pool or thread in the worker itself (on first use, or in worker_init_fn): threads are not copied "
        "by fork."
    )


def _also(still: Standstill, parent: Process | None, holder: tuple[Thread, Frame] | None) -> tuple[Where, ...]:
    return (still.where(holder[1], parent),) if holder and parent else ()


RULE = Rule("lock-lost-in-fork", "hang", decide, disproved_by_end=True)
