"""main-spins: the training process computes forever outside the loader.

What it sees
    The main thread burns CPU in the user's own code, between batches and steps, without completing any; or a thread
    or process that the script started does, while main waits for it. Successive stack samples find it on different
    lines of the same function, or in a loop of plain Python.

Why it matters
    The loop's own condition is never met, so the training loop around it never continues: the run computes forever
    without a step.

Evidence
    Since when, the CPU time used, the function that every stack sample found, the lines of its loop.

Fix
    Look at the loop's condition: what should change it, and why that does not happen.

When it is wrong
    Legitimately long work outside the loader: a tokeniser, a validation pass in plain Python. Time alone decides
    here, so it takes five minutes and twenty times the longest such pause before it, unless you press Ctrl-C. A line
    that imports something is never named: the run has not begun.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile

from unstuck.model import Case, Finding, Frame
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.hang.work import busy, cpu_line, culprit_frame, seen_line, stack_varies
from unstuck.rules.rule import Rule
from unstuck.rules.words import loop_or_code

_IMPORT = re.compile(r"\s*(import\s+\w|from\s+[\w.]+\s+import\b)")


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        if still.sampling or not busy(still) or not still.long or not _interpreter_runs(still):
            continue
        frame = culprit_frame(still)
        yield still.finding(
            RULE,
            confidence=0.7 if still.asked else 0.85,
            title=f"{_who(still)} computes forever in {loop_or_code(frame)}",
            evidence=(
                f"{still.who} has completed no batch, backward pass or step for {still.lasting}"
                if len(still.way) == 1
                else f"{still.who} computes, and nothing else has moved for {still.lasting}",
                cpu_line(still),
                seen_line(still, frame),
            ),
            where=still.where(frame),
            fix=f"Check what should end {loop_or_code(frame)}: what it tests does not change.",
            seen_by=still.stacks_by,
        )


def _who(still: Standstill) -> str:
    return "the training process" if len(still.way) == 1 else still.who


def _interpreter_runs(still: Standstill) -> bool:
    """Python itself is running the user's lines; a single long operation inside a library is not a loop."""
    frames = still.thread.frames
    if not frames or still.process.device or _imports(frames):
        return False
    runs = any(frame.user for frame in frames)  # it is not beginning, nor ending
    return frames[0].user or (runs and stack_varies(still))


def _imports(frames: tuple[Frame, ...]) -> bool:
    """The user's line imports a library: under load that takes long, and ends. At Ctrl-C nothing but that line may be
    left of it."""
    inside = takewhile(lambda frame: not frame.user, frames)
    own = next((frame for frame in frames if frame.user), None)
    at_import = own is not None and _IMPORT.match(own.code) is not None
    return at_import or any(frame.file.startswith("<frozen importlib") for frame in inside)


RULE = Rule("main-spins", "hang", decide, disproved_by_end=True)
