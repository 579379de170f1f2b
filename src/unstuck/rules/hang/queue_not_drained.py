"""queue-not-drained: joining a process whose queue still holds data.

What it sees
    A process waits for a child to end; the child's queue feeder thread is still writing to its pipe, and the only
    reader of that pipe is the one who waits.

Why it matters
    A process that put items on a multiprocessing queue does not end before they are flushed. The pipe takes
    64 KiB; the rest waits for a `get()` that comes only after the `join()`.

Evidence
    The join's line, the feeder thread blocked in its write, and the pipe between them.

Fix
    Take everything from the queue first, then join.

When it is wrong
    Only said when neither side was scheduled between two looks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from unstuck.model import Case, Finding, Fix, Process, Thread
from unstuck.rules.hang.standstill import Standstill, process_of, standstills, user_frame
from unstuck.rules.hang.waiting import feeds_queue
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        found = undrained(still)
        if found is None or not still.certain:
            continue
        child, _, joiner = found
        frame = user_frame(joiner)
        if child.pid == joiner.pid:
            yield _at_exit(still, joiner)
            continue
        yield RULE.finding(
            severity="error",
            confidence=still.confidence,
            title=f"{who(joiner)} joins {who(child)}, whose queue it has not emptied",
            evidence=(
                f"{who(joiner)} has waited at {place(frame)} for {still.lasting} for that process to end",
                f"the child's queue feeder thread is blocked writing to a full pipe that only {who(joiner)} can read",
                "a process with unflushed queue items does not end: each waits for the other",
            ),
            where=still.where(frame, joiner),
            fix=Fix("Call get() for every item before join(); or have the child call queue.cancel_join_thread()."),
            seen_by="kernel",
        )


def undrained(still: Standstill) -> tuple[Process, Thread, Process] | None:
    """The child, its feeder thread, and the process that joins it."""
    for child in reversed(still.trail):
        feeder = next((thread for thread in child.threads if _stuck_feeder(thread)), None)
        if feeder is None:
            continue
        if child.main_thread is not None and _flushes(child.main_thread) and len(still.trail) == 1:
            return child, feeder, child
        joiner = next((process for process in still.look.processes if _joins(process, child)), None)
        if joiner is not None:
            return child, feeder, joiner
    return None


def _stuck_feeder(thread: Thread) -> bool:
    """It cannot write: the pipe is full, or another process's feeder, stuck in the same pipe, has the queue's lock."""
    return thread.wait is not None and thread.wait.kind in ("pipe-write", "shared-lock") and feeds_queue(thread)


def _flushes(thread: Thread) -> bool:
    """The interpreter, on its way out, waits for its own queue to be flushed."""
    return any(
        f.file.endswith("multiprocessing/queues.py") and f.function.endswith("_finalize_join") for f in thread.frames
    )


def _at_exit(still: Standstill, process: Process) -> Finding:
    wait = next((t.wait for t in process.threads if t.wait and t.wait.kind == "pipe-write"), None)
    readers = [who(p) for pid in (wait.others if wait else ()) if (p := process_of(still.look, pid))]
    reader = f"only {' and '.join(readers)} could read it, and does not" if readers else "no living process reads it"
    script = next((word for word in still.case.command[1:] if word.endswith(".py")), None)
    return RULE.finding(
        severity="error",
        confidence=still.confidence,
        title=f"{who(process)} cannot end: a queue of its own still holds data that nobody takes",
        evidence=(
            f"the script is over; for {still.lasting} the interpreter has waited for a queue to be flushed",
            f"the queue's feeder thread is blocked writing to a full pipe; {reader}",
        ),
        where=replace(still.where(None, process), file=script, line=None, function=None),
        fix=Fix(
            "Empty the queue before the script ends, or call queue.cancel_join_thread() if what is left may be lost."
        ),
        seen_by="kernel",
    )


def _joins(process: Process, child: Process) -> bool:
    main = process.main_thread
    return main is not None and main.wait is not None and main.wait.kind == "child" and child.pid in main.wait.others


RULE = Rule("queue-not-drained", "hang", decide, disproved_by_end=True)
