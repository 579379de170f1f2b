"""file-lock-held: waiting for a lock on a file that another process holds.

What it sees
    The stuck thread is blocked in flock, fcntl or lockf, and the kernel's list of locks names the holder.

Why it matters
    The lock becomes free only when the holder releases it, closes the file, or exits. If the holder is the training
    process itself, waiting for the very worker that wants the lock, that never happens and the run hangs forever.

Evidence
    The path, the kind of lock, the holder's pid and command, and what the holder is doing meanwhile.

Fix
    Release the lock (close the file) before the loader starts, or take it only around the write.

When it is wrong
    A living holder may release the lock later. The finding comes at once only if the holder waits for the waiter;
    otherwise only after a very long time, or at Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, FileLock, Finding, Process
from unstuck.rules.hang.blocked import blocked
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.rule import Rule
from unstuck.rules.words import command, place, who

OWN_FIX = (
    "Use the file that is already open, or release its lock first: such a lock belongs to the open file, so a second "
    "open() in the same process waits for the first."
)
_KINDS = {"FLOCK": "flock", "POSIX": "fcntl", "OFDLCK": "open-file-description"}


def decide(case: Case) -> Iterable[Finding]:
    for still in blocked(case, "file-lock"):
        lock = next((lock for lock in still.look.locks if still.process.pid in lock.waiters), None)
        path = lock.path if lock else (still.thread.wait.target if still.thread.wait else "")
        holder = _holder(still, lock)
        own = lock is not None and lock.holder == still.process.pid
        yield still.finding(
            RULE,
            title=f"{still.who} is waiting for a lock on {path} that {'it' if own else _name(holder, lock)} holds",
            evidence=(
                f"{still.who} has been blocked for {still.lasting} taking the lock at {place(still.frame)}",
                *_holder_lines(holder, lock),
                f"deadlock: {who(holder)} is waiting for it in turn" if still.proven and holder else "",
            ),
            fix=OWN_FIX if own else _fix(still, holder, path),
            also=still.places(holder.user_frame if holder else None, holder),
        )


def _holder(still: Standstill, lock: FileLock | None) -> Process | None:
    if lock and lock.holder:
        return still.look.process(lock.holder) if lock.holder != still.process.pid else None
    return next(iter(still.others), None)


def _name(holder: Process | None, lock: FileLock | None) -> str:
    if holder is not None:
        return who(holder)
    if lock is None or lock.holder is None:
        return "a process that cannot be seen from here"
    return f"`{lock.holder_command or 'a process'}` (pid {lock.holder})"


def _holder_lines(holder: Process | None, lock: FileLock | None) -> Iterable[str]:
    if lock is None:
        yield "the kernel does not list who holds it"
        return
    kind = _KINDS.get(lock.kind, lock.kind)
    yield f"the kernel lists pid {lock.holder} as the holder of the {kind} lock ({lock.mode.lower()})"
    if holder is not None:
        at = f", now at {place(holder.user_frame)}" if holder.user_frame else ""
        yield f"the holder is {who(holder)}: {command(holder)}{at}"
    elif lock.holder_alive is False:
        yield "that process has exited; whoever inherited the open file keeps the lock"


def _fix(still: Standstill, holder: Process | None, path: str) -> str:
    if holder is not None and holder in still.trail:
        return (
            f"Release the lock on {path} (close the file, or flock LOCK_UN) in {who(holder)} before it waits for its "
            "workers."
        )
    return f"Stop or repair the process that holds the lock on {path}, and hold such locks only around the write."


RULE = Rule("file-lock-held", "hang", decide, disproved_by_end=True)
