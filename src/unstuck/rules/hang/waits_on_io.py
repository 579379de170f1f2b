"""waits-on-io: blocked in a read, receive or open that does not come back.

What it sees
    The stuck thread is inside a system call on a file, FIFO, pipe or socket, or in uninterruptible sleep.

Why it matters
    The other side sends nothing: a server that does not answer, a FIFO nobody writes to, a file server that is gone.

Evidence
    The system call, the descriptor, and what it leads to: the file, the FIFO, the peer's address, the mount.

Fix
    Give the operation a time limit, and see to the other side.

When it is wrong
    Slow storage. It is said only after a very long time in which not a byte came, or to a person who asks: at Ctrl-C,
    and to who attaches after 10 s of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.hang.pipe_full import full_pipe
from unstuck.rules.hang.queue_not_drained import undrained
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.hang.waiting import in_event_loop, reads_queue
from unstuck.rules.hang.waits_on_input import reads_input
from unstuck.rules.hang.waits_on_rank import in_collective
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who

_KINDS = frozenset(("pipe-read", "pipe-write", "socket", "file", "poll"))


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        if not _is_io(still) or not still.certain:
            continue
        wait = still.thread.wait
        target = wait.target if wait and wait.target else "a descriptor that could not be named"
        yield RULE.finding(
            severity="error",
            confidence=still.confidence,
            title=f"{who(still.process)} waits for {target}, from which nothing comes",
            evidence=(
                f"{who(still.process)} has been blocked at {place(still.frame)} for {still.lasting}",
                _call(still, target),
            ),
            where=still.where(),
            fix=Fix(
                "Give this operation a time limit (socket.settimeout, a timeout argument) and see to the other side."
            ),
            seen_by="kernel",
        )


def _is_io(still: Standstill) -> bool:
    if still.kind not in _KINDS or reads_input(still) or in_collective(still.thread) or in_event_loop(still.thread):
        return False
    if still.kind in ("pipe-read", "pipe-write") and reads_queue(still.thread):
        return False
    return full_pipe(still) is None and undrained(still) is None


def _call(still: Standstill, target: str) -> str:
    wait = still.thread.wait
    if wait is None:
        return "the kernel does not say in which call"
    number = f" on descriptor {wait.fd}" if wait.fd is not None else ""
    ends = f"; at the other end: pid {', '.join(map(str, wait.others))}" if wait.others else ""
    return f"it is inside {wait.syscall or 'a system call'}{number}, which is {target}{ends}"


RULE = Rule("waits-on-io", "hang", decide, disproved_by_end=True)
