"""waits-on-io: blocked in a read, receive or open that does not return.

What it sees
    The stuck thread is inside a system call on a file, FIFO, pipe or socket, or in uninterruptible sleep.

Why it matters
    The other side sends nothing: a server that does not answer, a FIFO nobody writes to, a file server that is gone.
    Without a timeout the call, and with it the training, waits forever.

Evidence
    The system call, the descriptor, and what it leads to: the file, the FIFO, the peer's address, the mount.

Fix
    Give the operation a timeout, and check the other side.

When it is wrong
    Slow storage. Reported only after a very long time in which not a byte came, at Ctrl-C, or by `unstuck attach`
    after 10 s of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.rules.hang.blocked import blocked
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.rule import Rule
from unstuck.rules.words import place

_WRITING = ("write", "pwrite", "send", "fsync", "fdatasync", "sync")


def decide(case: Case) -> Iterable[Finding]:
    for still in blocked(case, "io"):
        wait = still.thread.wait
        target = wait.target if wait and wait.target else "a descriptor that could not be identified"
        yield still.finding(
            RULE,
            title=f"{still.who} {_verb(still)} {target}, and {_nothing(still)}",
            evidence=(
                f"{still.who} has been blocked at {place(still.frame)} for {still.lasting}",
                _call(still, target),
            ),
            fix="Give this operation a timeout (socket.settimeout, a timeout argument) and check the other side.",
        )


def _writes(still: Standstill) -> bool:
    return still.thread.wait is not None and still.thread.wait.syscall.startswith(_WRITING)


def _verb(still: Standstill) -> str:
    return "is blocked writing to" if _writes(still) else "is waiting for"


def _nothing(still: Standstill) -> str:
    return "it takes no more" if _writes(still) else "nothing arrives"


def _call(still: Standstill, target: str) -> str:
    wait = still.thread.wait
    if wait is None:
        return "the kernel does not say in which call"
    what = target if wait.fd is None else f"descriptor {wait.fd}, which is {target}"
    ends = f"; at the other end: pid {', '.join(map(str, wait.others))}" if wait.others else ""
    return f"it is inside {wait.syscall or 'a system call'} on {what}{ends}"


RULE = Rule("waits-on-io", "hang", decide, disproved_by_end=True)
