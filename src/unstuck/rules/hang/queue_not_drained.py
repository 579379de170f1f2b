"""queue-not-drained: joining a process whose queue still holds data.

What it sees
    A process waits for a child to exit; the child's queue feeder thread is still writing to its pipe, or the child
    still puts into a queue that is full, and the only one that could empty it is the process that waits.

Why it matters
    A process that put items on a multiprocessing queue does not exit before they are flushed. The pipe takes
    64 KiB; the rest waits for a `get()` that comes only after the `join()`, so both wait forever.

Evidence
    The join's line, the feeder thread blocked in its write, and the pipe between them.

Fix
    Take everything from the queue first, then join.

When it is wrong
    Reported only if neither side ran between two snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from unstuck.model import Case, Finding, Process
from unstuck.rules.hang.blocked import blocked, stuck_feeder, undrained
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who


def decide(case: Case) -> Iterable[Finding]:
    for still in blocked(case, "queue"):
        pair = undrained(still)
        if pair is not None:
            child, joiner = pair
            yield _at_exit(still, joiner) if child.pid == joiner.pid else _at_join(still, child, joiner)


def _at_join(still: Standstill, child: Process, joiner: Process) -> Finding:
    frame = joiner.user_frame
    feeder = any(map(stuck_feeder, child.threads))
    full = "the child's queue feeder thread is blocked writing to a full pipe that only {} can read"
    limited = "the child is blocked in put(): the queue has reached its maxsize, and {} does not take anything out"
    return still.finding(
        RULE,
        title=f"{who(joiner)} joins {who(child)} before emptying its queue",
        evidence=(
            f"{who(joiner)} has been waiting at {place(frame)} for {still.lasting} for that process to exit",
            (full if feeder else limited).format(who(joiner)),
            "deadlock: a process with unflushed queue items does not exit" if feeder else "deadlock: neither can go on",
        ),
        chain=False,
        where=still.where(frame, joiner),
        fix="Call get() for every item before join()"
        + ("; or have the child call queue.cancel_join_thread()." if feeder else ", or give the queue no maxsize."),
        also=still.places(child.user_frame, child),
    )


def _at_exit(still: Standstill, process: Process) -> Finding:
    wait = next((t.wait for t in process.threads if t.wait and t.wait.kind == "pipe-write"), None)
    readers = [who(p) for pid in (wait.others if wait else ()) if (p := still.look.process(pid))]
    reader = f"only {' and '.join(readers)} could read it, and does not" if readers else "no living process reads it"
    script = next((word for word in still.case.command[1:] if word.endswith(".py")), None)
    return still.finding(
        RULE,
        title=f"{who(process)} cannot exit: its own queue still holds data that nobody takes",
        evidence=(
            f"the script is finished; the interpreter has been waiting for {still.lasting} to flush a queue",
            f"the queue's feeder thread is blocked writing to a full pipe; {reader}",
        ),
        where=replace(still.where(None, process), file=script, line=None, function=None),
        fix="Empty the queue before the script ends, or call queue.cancel_join_thread() if its items are not needed.",
    )


RULE = Rule("queue-not-drained", "hang", decide, disproved_by_end=True)
