"""Whether the stuck thread computes, and where: read off several looks."""

from __future__ import annotations

from itertools import takewhile

from unstuck.model import Frame, Thread
from unstuck.rules.hang.knot import thread_again
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.words import lines, seconds

_LOADING = ("torch/utils/data/_utils/fetch.py", "torch/utils/data/dataloader.py")
BUSY_SHARE = 0.4
"""Share of a core that counts as computing: two busy workers on one core get half each."""
CROWDED_SHARE = 0.02
"""Share that a thread gets at least when many others want the core too."""


def looks_of(still: Standstill) -> list[tuple[float, Thread]]:
    """The culprit in every look with stacks since it stood still, oldest first."""
    seen = []
    for look in still.case.looks:
        thread = thread_again(look, still.process.pid, still.thread.tid)
        if thread is not None and look.stacks and look.at >= still.stall.since - 0.5:
            seen.append((look.at, thread))
    return seen


def cpu_share(still: Standstill) -> float | None:
    """Cores used by the thread between the first and the last look; None with a single look."""
    seen = looks_of(still)
    if len(seen) < 2 or seen[-1][0] - seen[0][0] < 0.2:
        return None
    return (seen[-1][1].cpu - seen[0][1].cpu) / (seen[-1][0] - seen[0][0])


def busy(still: Standstill) -> bool:
    """It computes: it had a good share of a core, or every look found it ready to run on a crowded machine."""
    share = cpu_share(still)
    if share is None:
        return still.kind == "running"
    running = [thread.wait is not None and thread.wait.kind == "running" for _, thread in looks_of(still)]
    return share >= BUSY_SHARE or (share >= CROWDED_SHARE and sum(running) >= 0.75 * len(running))


def cpu_line(still: Standstill) -> str:
    seen = looks_of(still)
    share = cpu_share(still)
    if share is None:
        return "its thread was on a processor when looked at: it computes, it does not wait"
    used, over = seen[-1][1].cpu - seen[0][1].cpu, seen[-1][0] - seen[0][0]
    return f"its thread used {seconds(used)} of processor time in {seconds(over)}: it computes, it does not wait"


def culprit_frame(still: Standstill) -> Frame | None:
    """The user's innermost function that every look found on the stack, with a loop if one has it."""
    # The latest ones: the first may have come just before it stood still.
    seen = [thread for _, thread in looks_of(still)][-3:] or [still.thread]
    always = set.intersection(*({(f.file, f.function) for f in t.frames} for t in seen))
    inside = list(takewhile(lambda f: not f.file.endswith(_LOADING), still.thread.frames)) if still.in_sample else []
    common = [f for f in inside or still.thread.frames if f.user and (f.file, f.function) in always]
    if not common:
        return still.frame
    return next((f for f in common if f.loop), common[0])


def seen_lines(still: Standstill, frame: Frame | None) -> list[str]:
    """Where successive looks found the thread inside that function."""
    if frame is None:
        return []
    seen = [thread for _, thread in looks_of(still)]
    found = sorted(
        {f.line for t in seen for f in t.frames if (f.file, f.function) == (frame.file, frame.function)} or {frame.line}
    )
    number = f"{len(seen)} looks" if len(seen) > 1 else "the look"
    at = lines((found[0], found[-1])) if len(found) > 1 else f"line {found[0]}"
    inside = f", inside the loop at {lines(frame.loop)}" if frame.loop else ""
    return [f"{number} found it at {at} of {frame.function}{inside}"]


def stack_varies(still: Standstill) -> bool:
    """The stack changed between looks: the interpreter is running lines, not one long operation."""
    return len({tuple((f.file, f.line) for f in thread.frames) for _, thread in looks_of(still)}) > 1
