"""progress-unknown: it stands still, and the cause is not established.

What it sees
    No batch, no step, no byte and no change of stack for a very long time, and no other rule fits.

Why it matters
    Not known. This is the honest last resort: it shows everything that was seen and claims nothing.

Evidence
    Where every process is, and what the kernel says each one waits for.

Fix
    Look at the places shown; `unstuck explain` lists what was looked for.

When it is wrong
    A very long operation of a kind this run has not had before.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Process
from unstuck.rules.hang.standstill import seat, standstills
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who

SHOWN = 8


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        if not still.long or still.stall.standing < case.times.suspect / 2 or (case.asked and not still.proven):
            continue  # to who attaches, that nothing is established is no finding: the page says where it stands
        seen = [p for p in still.look.processes if p.is_python and p.threads and p.role != "helper"]
        yield RULE.finding(
            severity="error",
            confidence=0.5,
            title=f"nothing has moved for {still.lasting}; the cause is not established",
            evidence=tuple(_seat(process) for process in seen[:SHOWN]),
            where=still.where(),
            fix=Fix(f"Look at {place(still.frame)}: that is where it stands."),
            seen_by=still.seen_by,
        )


def _seat(process: Process) -> str:
    thread = process.main_thread
    frame = seat(thread)
    wait = thread.wait if thread else None
    what = (
        "computing"
        if wait and wait.kind == "running"
        else f"waiting ({wait.kind}{', ' + wait.syscall if wait.syscall else ''})"
        if wait
        else "unknown"
    )
    return f"{who(process)} is at {place(frame)}, {what}"


RULE = Rule("progress-unknown", "hang", decide, last_resort=True, disproved_by_end=True)
