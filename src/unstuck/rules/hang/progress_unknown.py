"""progress-unknown: the run stands still, and the cause is not known.

What it sees
    No batch, no step, no byte and no change of stack for a very long time, and no other rule fits.

Why it matters
    The run makes no progress at all, and nothing suggests that it will. This is the last resort: it shows everything
    that was seen and claims no cause.

Evidence
    Where every process is, and what the kernel says each one waits for.

Fix
    Look at the places shown; `unstuck explain` lists the causes that were checked.

When it is wrong
    A very long operation of a kind this run has not had before.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Process
from unstuck.rules import scans
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who

MAX_PROCESSES_SHOWN = 8


def decide(case: Case) -> Iterable[Finding]:
    yield from scans.hanging(RULE, case, spins=False)
    for still in standstills(case):
        if not still.long or still.stall.standing < case.times.suspect / 2 or (case.asked and not still.proven):
            continue  # `attach` shows where it stands anyway: there an unknown cause is no finding
        if _starts_or_ends(still):
            continue
        shown = [p for p in still.look.processes if p.is_python and p.threads and p.role != "helper"]
        yield still.finding(
            RULE,
            confidence=0.5,
            title=f"no progress for {still.lasting}, and the cause is not known",
            evidence=map(_state, shown[:MAX_PROCESSES_SHOWN]),
            fix=f"Look at {place(still.frame)}: that is where it stands.",
            seen_by=still.stacks_by,
        )


def _starts_or_ends(still: Standstill) -> bool:
    """It computes before its first batch, or after its last line: on a busy machine both may take long."""
    wait = still.thread.wait
    return still.stall.phase in ("start", "ended") and wait is not None and wait.kind == "running"


def _state(process: Process) -> str:
    thread = process.main_thread
    wait = thread.wait if thread else None
    if wait is None:
        doing = "unknown"
    elif wait.kind == "running":
        doing = "computing"
    else:
        doing = f"waiting ({wait.kind}{', ' + wait.syscall if wait.syscall else ''})"
    return f"{who(process)} is at {place(thread.current_frame if thread else None)}, {doing}"


RULE = Rule("progress-unknown", "hang", decide, last_resort=True, disproved_by_end=True)
