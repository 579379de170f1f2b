"""file-lock-held: waiting for a lock on a file that another process holds.

What it sees
    The stuck thread is blocked in flock, fcntl or lockf, and the kernel's list of locks names the holder.

Why it matters
    The lock is only given up when the holder releases it, closes the file, or ends. If the holder is the training
    process itself, which waits for the very worker that waits for the lock, that never happens.

Evidence
    The path, the kind of lock, the holder's pid and command, and what the holder is doing meanwhile.

Fix
    Release the lock (close the file) before the loader starts, or take it only around the write.

When it is wrong
    A living holder may release it later. It is said at once only where the holder waits for the waiter; otherwise
    only after a very long time, or at Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, FileLock, Finding, Fix, Process, Where
from unstuck.rules.hang.standstill import Standstill, process_of, standstills, user_frame
from unstuck.rules.rule import Rule
from unstuck.rules.words import command, place, who


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        if still.kind != "file-lock" or not still.certain:
            continue
        lock = _lock_of(still)
        path = lock.path if lock else (still.thread.wait.target if still.thread.wait else "")
        holder = _holder(still, lock)
        yield RULE.finding(
            severity="error",
            confidence=still.confidence,
            title=f"{who(still.process)} waits for a lock on {path} that {_name(holder, lock)} holds",
            evidence=(
                f"{who(still.process)} has been blocked for {still.lasting} taking the lock at {place(still.frame)}",
                *_holder_lines(holder, lock),
                *([f"neither can go on: {who(holder)} waits for it in turn"] if still.proven and holder else []),
            ),
            where=still.where(),
            fix=Fix(_fix(still, holder, path)),
            seen_by="kernel",
            also=_also(still, holder),
        )


def _lock_of(still: Standstill) -> FileLock | None:
    mine = [lock for lock in still.look.locks if still.process.pid in lock.waiters]
    return mine[0] if mine else None


def _holder(still: Standstill, lock: FileLock | None) -> Process | None:
    wait = still.thread.wait
    candidates = [lock.holder] if lock and lock.holder else list(wait.others) if wait else []
    found = (process_of(still.look, pid) for pid in candidates if pid is not None and pid != still.process.pid)
    return next((process for process in found if process), None)


def _name(holder: Process | None, lock: FileLock | None) -> str:
    if holder is not None:
        return who(holder)
    if lock is None or lock.holder is None:
        return "a process that cannot be seen from here"
    return f"`{lock.holder_command or 'a process'}` (pid {lock.holder})"


def _holder_lines(holder: Process | None, lock: FileLock | None) -> list[str]:
    if lock is None:
        return ["the kernel does not list who holds it"]
    kind = {"FLOCK": "flock", "POSIX": "fcntl", "OFDLCK": "open-file-description"}.get(lock.kind, lock.kind)
    said = [f"the kernel lists pid {lock.holder} as holder of the {kind} lock ({lock.mode.lower()})"]
    if lock.holder_alive is False and holder is None:
        said.append("that process has ended; whoever inherited the open file keeps the lock")
    if holder is not None:
        doing = _doing(holder)
        said.append(f"the holder is {who(holder)}: {command(holder)}{doing}")
    return said


def _doing(holder: Process) -> str:
    frame = user_frame(holder)
    return f", now at {place(frame)}" if frame else ""


def _fix(still: Standstill, holder: Process | None, path: str) -> str:
    if holder is not None and holder in still.trail:
        return (
            f"{who(holder)[0].upper()}{who(holder)[1:]} must release the lock on {path} (close the file, or flock "
            "LOCK_UN) before it waits for its workers."
        )
    return f"End or mend the process that holds the lock on {path}, and hold such locks only around the write itself."


def _also(still: Standstill, holder: Process | None) -> tuple[Where, ...]:
    frame = user_frame(holder)
    return (still.where(frame, holder),) if frame and holder else ()


RULE = Rule("file-lock-held", "hang", decide, disproved_by_end=True)
