"""lock-never-released: waiting for a lock whose holder does not let go.

What it sees
    The stuck thread waits for a threading or multiprocessing lock that another thread or process took and keeps,
    or that it took itself further up the stack.

Why it matters
    Only running code releases a lock. If its holder waits too, has exited, or is the waiting thread itself, no such
    code will run, and the training hangs forever.

Evidence
    The line that waits; who holds the lock and where, if that is visible; for a multiprocessing lock every process
    that shares it and what each is doing.

Fix
    Release it in a `with` block or `finally`, never call out while holding it, or use an RLock where the same
    thread may take it again.

When it is wrong
    A holder that is merely slow. Unless the deadlock is proven, the finding comes only after a very long time.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Frame, Process, Thread
from unstuck.rules.hang.blocked import blocked
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.hang.waiting import holding_frame, lock_name
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who

Holder = tuple[Process, Thread, Frame]


def decide(case: Case) -> Iterable[Finding]:
    for still in blocked(case, "lock"):
        name = lock_name(still.thread)
        holder = _find_holder(still, name)
        process, frame = (holder[0], holder[2]) if holder else (None, None)
        held, lines, fix = _words(still, holder, f"`{name}`" if name else "the lock")
        yield still.finding(
            RULE,
            title=f"{still.who} is waiting for {f'the lock `{name}`' if name else 'a lock'} {held}",
            evidence=(
                f"{still.who} has been waiting for it at {place(still.frame)} for {still.lasting}",
                *lines,
                "deadlock: between two snapshots, nothing that could release it has run" if still.proven else "",
            ),
            fix=fix,
            also=still.places(frame, process),
        )


def _find_holder(still: Standstill, name: str) -> Holder | None:
    """Who is inside a `with` of that lock: this very thread, another one here, or in a process that shares it."""
    taking = next((n for n, f in enumerate(still.thread.frames) if f.takes), 0)
    own = holding_frame(still.thread, name, skip=taking + 1)
    if own is not None:
        return still.process, still.thread, own
    holders = [
        (process, thread, frame)
        for process in (still.process, *_sharing(still))
        for thread in process.threads
        if thread.tid != still.thread.tid
        and (frame := holding_frame(thread, name)) is not None
        and not _also_waits(thread, name)
    ]
    return holders[0] if len(holders) == 1 else None


def _sharing(still: Standstill) -> list[Process]:
    return still.others if still.kind == "shared-lock" else []


def _also_waits(thread: Thread, name: str) -> bool:
    return lock_name(thread) == name and thread.wait is not None and thread.wait.kind in ("lock", "shared-lock")


def _words(still: Standstill, holder: Holder | None, lock: str) -> tuple[str, list[str], str]:
    """How the title ends, what is known of the holder, and the fix."""
    if holder is None:
        return (
            "that no visible thread holds" if still.proven else "whose holder is not visible",
            _nobody_lines(still),
            f"Take {lock} only in a `with` block, so that it is released also when the code raises or returns early.",
        )
    process, thread, frame = holder
    if thread.tid == still.thread.tid:
        return (
            "that it already holds: the same thread takes it twice",
            [f"further up the same stack, {place(frame)} is inside a `with` of that lock"],
            f"Make {lock} an RLock, or call the inner code without taking it again.",
        )
    now, thread_name = thread.user_frame or frame, thread.name or thread.tid
    at = "and is still there" if now == frame else f"and is now at {place(now)}"
    return (
        f"held by {f'its own thread {thread_name}' if process.pid == still.process.pid else who(process)}",
        [f"{who(process)}, thread {thread_name}, took it at {place(frame)} {at}"],
        f"Do not wait for anything while holding {lock}: release it before {place(frame)} blocks.",
    )


def _nobody_lines(still: Standstill) -> list[str]:
    """Who shares it, and who has exited: one of them may have taken the lock along."""
    if still.kind != "shared-lock":
        return ["no thread here is inside a `with` of that lock"]
    lines = [f"it is shared with {who(p)}, which is at {place(p.user_frame)}" for p in _sharing(still)[:4]]
    exited = [str(f.pid) for f in still.case.flights if not f.alive and f.pid != still.stall.pid]
    if exited:
        pids = ", ".join(exited[-4:])
        lines.append(f"processes of this run that have exited: pid {pids}; exiting does not release the lock")
    return lines or ["no thread here is inside a `with` of that lock"]


RULE = Rule("lock-never-released", "hang", decide, disproved_by_end=True)
