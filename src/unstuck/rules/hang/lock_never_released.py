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
from unstuck.rules.hang.blocked import blocked, holding_frame, lock_name
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who

Holder = tuple[Process, Thread, Frame]


def decide(case: Case) -> Iterable[Finding]:
    for still in blocked(case, "lock"):
        name = lock_name(still.thread)
        holder = _find_holder(still, name)
        process, frame = (holder[0], holder[2]) if holder else (None, None)
        yield still.finding(
            RULE,
            title=f"{still.who} is waiting for {f'the lock `{name}`' if name else 'a lock'} {_held(still, holder)}",
            evidence=(
                f"{still.who} has been waiting for it at {place(still.frame)} for {still.lasting}",
                *(_holder_line(still, holder) if holder else _nobody_lines(still)),
                "deadlock: between two snapshots, nothing that could release it has run" if still.proven else "",
            ),
            fix=_fix(still, holder, name),
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


def _held(still: Standstill, holder: Holder | None) -> str:
    if holder is None:
        return "that no visible thread holds" if still.proven else "whose holder is not visible"
    process, thread, _ = holder
    if thread.tid == still.thread.tid:
        return "that it already holds: the same thread takes it twice"
    if process.pid == still.process.pid:
        return f"held by its own thread {thread.name or thread.tid}"
    return f"held by {who(process)}"


def _holder_line(still: Standstill, holder: Holder) -> Iterable[str]:
    process, thread, frame = holder
    if thread.tid == still.thread.tid:
        yield f"further up the same stack, {place(frame)} is inside a `with` of that lock"
    else:
        now = thread.user_frame or frame
        at = "and is still there" if now == frame else f"and is now at {place(now)}"
        yield f"{who(process)}, thread {thread.name or thread.tid}, took it at {place(frame)} {at}"


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


def _fix(still: Standstill, holder: Holder | None, name: str) -> str:
    lock = f"`{name}`" if name else "the lock"
    if holder is None:
        return f"Take {lock} only in a `with` block, so that it is released also when the code raises or returns early."
    if holder[1].tid == still.thread.tid:
        return f"Make {lock} an RLock, or call the inner code without taking it again."
    return f"Do not wait for anything while holding {lock}: release it before {place(holder[2])} blocks."


RULE = Rule("lock-never-released", "hang", decide, disproved_by_end=True)
