"""waits-on-rank: blocked in a collective that another rank has not joined.

What it sees
    The main thread of a rank sits in a call of torch.distributed.

Why it matters
    A collective ends when every rank has come to it.

Evidence
    The call and its line in the user's code, and where the other ranks of this machine are.

Fix
    Find out why the missing rank is elsewhere; every rank must make the same calls in the same order.

When it is wrong
    A rank that is merely late. It is said only after a very long time, or to a person who asks: at Ctrl-C, and to who
    attaches, if every rank can be seen and all are in a collective.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Thread
from unstuck.rules.hang.standstill import Standstill, process_of, standstills, user_frame
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who

_COLLECTIVES = ("torch/distributed/distributed_c10d.py", "torch/distributed/rendezvous.py")


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        if not in_collective(still.thread) or not still.certain:
            continue
        call = next(f for f in still.thread.frames if f.file.endswith(_COLLECTIVES))
        yield RULE.finding(
            severity="error",
            confidence=still.confidence,
            title=f"{who(still.process)} waits in {call.function} for a rank that does not come",
            evidence=(
                f"{who(still.process)} has been in {call.function}, called at {place(still.frame)}, for "
                f"{still.lasting}",
                *_elsewhere(still),
            ),
            where=still.where(),
            fix=Fix(
                "Let every rank make the same collective calls in the same order; look at the rank that is elsewhere."
            ),
            seen_by=still.seen_by,
        )


def in_collective(thread: Thread) -> bool:
    return any(f.file.endswith(_COLLECTIVES) for f in thread.frames)


def _elsewhere(still: Standstill) -> list[str]:
    said = []
    for stall in still.case.stalls:
        other = process_of(still.look, stall.pid)
        if other is None or other.pid == still.process.pid or other.main_thread is None:
            continue
        if not in_collective(other.main_thread):
            said.append(f"{who(other)} is not in a collective: it is at {place(user_frame(other))}")
    if said:
        return said
    peers = [p for p in still.look.processes if p.ppid == still.process.ppid and p.pid != still.process.pid]
    apart = [
        p for p in peers if p.is_python and p.main_thread and p.main_thread.frames and not in_collective(p.main_thread)
    ]
    return [f"{who(p)} is not in a collective: it is at {place(user_frame(p))}" for p in apart[:4] if user_frame(p)]


RULE = Rule("waits-on-rank", "hang", decide, disproved_by_end=True)
