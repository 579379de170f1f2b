"""lock-lost-in-fork: a forked worker waits for something only a thread of its parent could give.

What it sees
    A forked process waits without a timeout on a lock (or a future, queue, event) in its own private memory, and no
    thread of its own can release it. The fork copied the lock as it was, held, but not the thread that held it.

Why it matters
    Only the forking thread exists in a forked child. A lock that another thread held at that instant stays held
    forever in the child, a pool's or consumer's thread does not exist there, and the batch never comes.

Evidence
    The line that waits, how many Python threads the worker has, the threads of the parent that hold or serve the
    same thing, and the semaphore's value in both processes where it can be read.

Fix
    Create the lock (or pool) again in the child: `os.register_at_fork(after_in_child=…)`, create it lazily in the
    worker, or use the start method spawn.

When it is wrong
    A lock that the worker's own single thread takes twice looks alike; the `with` around it tells the difference.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Frame, Process, Thread, Wait
from unstuck.rules.hang.blocked import blocked, native_wait, own_threads
from unstuck.rules.hang.waiting import LOCK, awaited, holding_frame, lock_name, same_lock
from unstuck.rules.rule import Rule
from unstuck.rules.words import place
from unstuck.text import count

_NATIVE_FIX = (
    "Start these processes before the first parallel operation, with the start method spawn, or call "
    "torch.set_num_threads(1) first thing in each."
)


def decide(case: Case) -> Iterable[Finding]:
    for still in blocked(case, "fork"):
        parent = still.look.process(still.process.ppid)
        name, word = lock_name(still.thread), awaited(still.thread)
        helpers = [t for t in own_threads(parent) if t is not parent.main_thread] if parent else []
        holder = next(((t, frame) for t in helpers if (frame := _taking_frame(t, name))), None)
        lock = f"waiting for {f'the lock `{name}`' if name else 'a lock'}, which was held when it was forked"
        lost = "waiting for a thread that the fork did not copy"
        native = native_wait(still.thread)
        if native:
            lock = f"stuck in native code at {place(still.frame)}: the fork did not copy the library's threads"
        yield still.finding(
            RULE,
            confidence=still.confidence if holder or word != LOCK else min(still.confidence, 0.9),
            title=f"{still.who} is {lock if word == LOCK else lost}",
            evidence=(
                f"{still.who} has been waiting at {place(still.frame)} ({word}, no timeout) for {still.lasting}",
                "it was forked, and its only Python thread is the one that waits: nothing in it can end the wait",
                _semaphore(still.thread.wait),
                _native_line(parent) if native else _parent_line(parent, helpers, holder),
            ),
            fix=_NATIVE_FIX if native else _fix(word, name),
            also=still.places(holder[1] if holder else None, parent),
        )


def _taking_frame(thread: Thread, name: str) -> Frame | None:
    """Where a thread is inside a `with` of a lock of that name, or takes it."""
    return holding_frame(thread, name) or next((f for f in thread.frames if same_lock(f.takes, name)), None)


def _semaphore(wait: Wait | None) -> str:
    if wait is None or wait.value is None:
        return ""
    taken = " (taken)" if wait.value == 0 else ""
    parent = "" if wait.parent_value is None else f"; in the parent, the one at the same address is {wait.parent_value}"
    return f"its semaphore is {wait.value}{taken}{parent}"


def _parent_line(parent: Process | None, helpers: list[Thread], holder: tuple[Thread, Frame] | None) -> str:
    if parent is None:
        return "the parent it was forked from is gone"
    if holder is not None:
        thread, frame = holder
        return f"in the parent, thread {thread.name or thread.tid} takes that lock at {place(frame)}"
    if not helpers:
        return "the parent has no other thread now; the one that held it has ended since"
    names = ", ".join(f"{t.name or t.tid} ({place(t.current_frame)})" for t in helpers[:3])
    return f"threads of the parent that the fork did not copy: {names}"


def _native_line(parent: Process | None) -> str:
    native = [t for t in parent.threads if not t.python] if parent else []
    if not native:
        return "a thread pool that the parent had started before the fork does not exist in the child"
    return f"its parent runs {count(len(native), 'native thread')} (OpenMP's, say), which the fork did not copy"


def _fix(word: str, name: str) -> str:
    if word != LOCK:
        return "Create the pool or thread in the worker (on first use, or in worker_init_fn): fork copies no threads."
    lock = f"`{name}`" if name else "the lock"
    return (
        f"Create {lock} again in each worker (os.register_at_fork(after_in_child=…), or on first use), or start the "
        "workers with multiprocessing_context='spawn'."
    )


RULE = Rule("lock-lost-in-fork", "hang", decide, disproved_by_end=True)
