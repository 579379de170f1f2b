"""lock-never-released: waiting for a lock whose holder does not let go.

What it sees
    The stuck thread waits for a threading or multiprocessing lock that another thread or process took and keeps,
    or that it took itself further up.

Why it matters
    A plain lock is given back only by code that runs. If its holder waits too, has ended, or is the waiting thread
    itself, no such code will run.

Evidence
    The line that waits; who holds the lock and where, if that can be seen; for a multiprocessing lock every process
    that has it and what each is doing.

Fix
    Release it in a `with` block or `finally`, never call out while holding it, or use an RLock where the same
    thread may come again.

When it is wrong
    A holder that is merely slow. Unless the deadlock is proven it is said only after a very long time.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Frame, Process, Thread, Where
from unstuck.rules.hang.lock_lost_in_fork import lost_in_fork
from unstuck.rules.hang.standstill import Standstill, process_of, standstills, user_frame
from unstuck.rules.hang.waiting import LOCK, awaited, holding_frame, lock_name
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        if not waits_for_lock(still) or not still.certain:
            continue
        name = lock_name(still.thread)
        holder = find_holder(still, name)
        lock = f"the lock `{name}`" if name else "a lock"
        yield RULE.finding(
            severity="error",
            confidence=still.confidence,
            title=f"{who(still.process)} waits for {lock} {_held(still, holder)}",
            evidence=(
                f"{who(still.process)} has waited for it at {place(still.frame)} for {still.lasting}",
                *_holder_lines(still, holder),
                *(
                    ["nobody who could release it can run: two looks found all of them waiting, unscheduled"]
                    if still.proven
                    else []
                ),
            ),
            where=still.where(),
            fix=Fix(_fix(still, holder, name)),
            seen_by="kernel",
            also=_also(still, holder),
        )


def waits_for_lock(still: Standstill) -> bool:
    """Blocked on a lock proper: not an event or queue, not one lost in a fork."""
    if still.kind not in ("lock", "shared-lock") or awaited(still.thread) != LOCK:
        return False
    return still.kind == "shared-lock" or (bool(lock_name(still.thread)) and not lost_in_fork(still))


Holder = tuple[Process, Thread, Frame]


def find_holder(still: Standstill, name: str) -> Holder | None:
    """Who is inside a `with` of that lock: this very thread, another one here, or in a process that shares it."""
    own = holding_frame(still.thread, name, skip=_own_depth(still.thread))
    if own is not None:
        return still.process, still.thread, own
    wait = still.thread.wait
    sharing = [process_of(still.look, pid) for pid in wait.others] if wait and still.kind == "shared-lock" else []
    found = []
    for process in [still.process, *(p for p in sharing if p)]:
        for thread in process.threads:
            frame = holding_frame(thread, name) if thread.tid != still.thread.tid else None
            if frame is not None and not _also_waits(thread, name):
                found.append((process, thread, frame))
    return found[0] if len(found) == 1 else None


def _own_depth(thread: Thread) -> int:
    """Frames down to and including the one whose line takes the lock."""
    return next((n + 1 for n, f in enumerate(thread.frames) if f.takes), 1)


def _also_waits(thread: Thread, name: str) -> bool:
    return lock_name(thread) == name and thread.wait is not None and thread.wait.kind in ("lock", "shared-lock")


def _held(still: Standstill, holder: Holder | None) -> str:
    if holder is None:
        return "that nobody is seen to hold" if still.proven else "whose holder is not visible"
    process, thread, _ = holder
    if thread.tid == still.thread.tid:
        return "that it holds already: the same thread takes it twice"
    if process.pid == still.process.pid:
        return f"held by its own thread {thread.name or thread.tid}"
    return f"held by {who(process)}"


def _holder_lines(still: Standstill, holder: Holder | None) -> list[str]:
    wait = still.thread.wait
    if holder is not None:
        process, thread, frame = holder
        at = next((f for f in thread.frames if f.user), frame)
        if thread.tid == still.thread.tid:
            return [f"further up the same stack, {place(frame)} is inside a `with` of that lock"]
        name = thread.name or thread.tid
        return [f"{who(process)}, thread {name}, took it around {place(frame)} and is now at {place(at)}"]
    said: list[str] = []
    if still.kind == "shared-lock" and wait is not None:
        sharing = [p for pid in wait.others if (p := process_of(still.look, pid))]
        said.extend(f"it is shared with {who(p)}, which is at {place(user_frame(p))}" for p in sharing[:4])
        said.extend(_ended(still))
    return said or ["no thread here is seen inside a `with` of that lock"]


def _ended(still: Standstill) -> list[str]:
    """Processes of this run that ended: one of them may have taken the lock along."""
    gone = [f for f in still.case.flights if not f.alive and f.pid != still.stall.pid]
    if not gone:
        return []
    names = ", ".join(str(f.pid) for f in gone[-4:])
    return [f"processes of this run that have ended since: pid {names}; a process that ends does not release it"]


def _fix(still: Standstill, holder: Holder | None, name: str) -> str:
    lock = f"`{name}`" if name else "the lock"
    if holder is not None and holder[1].tid == still.thread.tid:
        return f"Make {lock} an RLock, or call the inner code without taking it again."
    if holder is not None:
        return f"Do not wait for anything while holding {lock}: release it before {place(holder[2])} blocks."
    return f"Take {lock} only in a `with` block, so that it is released also when the code raises or returns early."


def _also(still: Standstill, holder: Holder | None) -> tuple[Where, ...]:
    return (still.where(holder[2], holder[0]),) if holder else ()


RULE = Rule("lock-never-released", "hang", decide, disproved_by_end=True)
