"""Whether a stuck thread computes, where, and how much: read off several looks, and compared with other workers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from statistics import median

from unstuck.model import Case, Frame, Look, Process, Thread
from unstuck.rules.hang.deadlock import thread_again
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.words import lines, seconds

_LOADING = ("torch/utils/data/_utils/fetch.py", "torch/utils/data/dataloader.py")
BUSY_SHARE = 0.4  # of a core counts as computing: two busy workers on one core get half each
CROWDED_SHARE = 0.02  # of a core is what a thread gets at least when many others want it too
RUNNING_SHARE = 0.75  # of the looks that must find it ready to run on such a crowded machine
MIN_WATCHED_SECONDS = 0.2  # between two looks: over less time a share of a core says nothing
MIN_EXCESS_SECONDS = 2.0  # workers may differ by so much from their start alone
MIN_EXCESS_SPREADS = 5.0  # so many times further out than the other workers lie apart
LONE_SPREAD = 0.5  # of a single sibling's time is taken for a spread, since there is none to measure


def looks_of(still: Standstill) -> list[tuple[float, Thread]]:
    """The culprit in every look with stacks since it stood still, oldest first."""
    begin = still.stall.since - 0.5
    looks = [look for look in still.case.looks if look.stacks and look.at >= begin]
    return [(look.at, t) for look in looks if (t := thread_again(look, still.process.pid, still.thread.tid))]


def _cpu_used(still: Standstill) -> tuple[float, float] | None:
    """Processor seconds of the thread, and the seconds in which it used them; None with a single look."""
    seen = looks_of(still)
    if len(seen) < 2 or seen[-1][0] - seen[0][0] < MIN_WATCHED_SECONDS:
        return None
    return seen[-1][1].cpu - seen[0][1].cpu, seen[-1][0] - seen[0][0]


def busy(still: Standstill) -> bool:
    """It computes: it had a good share of a core, or every look found it ready to run on a crowded machine."""
    used = _cpu_used(still)
    if used is None:
        return still.kind == "running"
    share = used[0] / used[1]
    running = [thread.wait is not None and thread.wait.kind == "running" for _, thread in looks_of(still)]
    return share >= BUSY_SHARE or (share >= CROWDED_SHARE and sum(running) >= RUNNING_SHARE * len(running))


def cpu_line(still: Standstill) -> str:
    used = _cpu_used(still)
    if used is None:
        return "its thread was running on a CPU core: it computes, it does not wait"
    return f"its thread used {seconds(used[0])} of CPU time in {seconds(used[1])}: it computes, it does not wait"


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


def seen_line(still: Standstill, frame: Frame | None) -> str:
    """Where successive looks found the thread inside that function."""
    if frame is None:
        return ""
    seen = [thread for _, thread in looks_of(still)]
    function = frame.file, frame.function
    at = sorted({f.line for t in seen for f in t.frames if (f.file, f.function) == function} or {frame.line})
    samples = f"{len(seen)} stack samples" if len(seen) > 1 else "the stack sample"
    inside = f", inside the loop at {lines(frame.loop)}" if frame.loop else ""
    return f"{samples} found it at {lines((at[0], at[-1]))} of {frame.function}{inside}"


def stack_varies(still: Standstill) -> bool:
    """The stack changed between looks: the interpreter is running lines, not one long operation."""
    return len({tuple((f.file, f.line) for f in thread.frames) for _, thread in looks_of(still)}) > 1


@dataclass(frozen=True)
class Excess:
    """Processor seconds of one worker beyond its siblings'. Batches are dealt out in turn, so all work alike: the
    difference went into what this one is at now, also where nobody watched."""

    own: float
    others: float
    """Their median."""
    count: int

    @property
    def seconds(self) -> float:
        return self.own - self.others

    @property
    def line(self) -> str:
        other = "the other worker" if self.count == 1 else f"the median of the {self.count} other workers is"
        return (
            f"it has used {seconds(self.own)} of CPU time since its start, {other} {seconds(self.others)}: "
            "batches are dealt out in turn, so the difference went into this one"
        )


def excess(case: Case, process: Process) -> Excess | None:
    """None where there is nothing to compare with, or the difference is of the kind the others have too."""
    look = next((look for look in reversed(case.looks) if look.stacks), None)
    others = [_cpu(sibling) for sibling in siblings(look, process)] if look and process.role == "worker" else []
    if not others:
        return None
    own = _cpu(process)
    spread = max(others) - min(others) if len(others) > 1 else LONE_SPREAD * others[0]
    beyond = own - max(others) > max(MIN_EXCESS_SECONDS, MIN_EXCESS_SPREADS * spread)
    return Excess(own, median(others), len(others)) if beyond else None


def siblings(look: Look, process: Process) -> list[Process]:
    """Workers of the same loader, as far as that can be seen: of the same parent and about the same age."""
    apart = max(2.0, 0.5 * (look.at - process.began))
    workers = [p for p in look.processes if p.role == "worker" and p.ppid == process.ppid and p.pid != process.pid]
    return [worker for worker in workers if abs(worker.began - process.began) < apart]


def _cpu(process: Process) -> float:
    return process.main_thread.cpu if process.main_thread else 0.0
