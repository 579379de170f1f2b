"""What a stuck thread does that does not wait: it computes, at a sample or elsewhere, or tries something again."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from statistics import median

from unstuck.model import Case, Flight, Frame, Look, Pace, PathFact, Process, Thread
from unstuck.rules.hang.deadlock import thread_again
from unstuck.rules.hang.standstill import LOOK_BEFORE_SECONDS, Standstill
from unstuck.rules.words import lines, seconds

_LOADING = ("torch/utils/data/_utils/fetch.py", "torch/utils/data/dataloader.py")
BUSY_SHARE = 0.4  # of a core counts as computing: two busy workers on one core get half each
CROWDED_SHARE = 0.02  # of a core is what a thread gets at least when many others want it too
RUNNING_SHARE = 0.75  # of the looks that must find it ready to run on such a crowded machine
OTHERS_SHARE = 0.1  # of a core is more than waking now and then to look at the time
MIN_WATCHED_SECONDS = 0.2  # between two looks: over less time a share of a core says nothing
MIN_EXCESS_SECONDS = 2.0  # workers may differ by so much from their start alone
MIN_EXCESS_SPREADS = 5.0  # so many times further out than the other workers lie apart
MIN_SAMPLES = 20  # fewer say nothing about what is usual
MANY_SAMPLES = 200  # make the longest of them a measure too, one that a crowded machine blurs less
MIN_ATTEMPTS = 5  # within one sample, for a retry
LONE_SPREAD = 0.5  # of a single sibling's time is taken for a spread, since there is none to measure


# --- computing -----------------------------------------------------------------------------------------------


def looks_of(still: Standstill) -> list[tuple[float, Thread]]:
    """The culprit in every look with stacks since it stood still, oldest first."""
    begin = still.stall.since - LOOK_BEFORE_SECONDS
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


def computing_elsewhere(still: Standstill) -> list[Process]:
    """Other processes that used the CPU while this stood still."""
    looks = [look for look in still.case.looks if look.at >= still.stall.since - LOOK_BEFORE_SECONDS] or [still.look]
    first, last = looks[0], looks[-1]
    least = OTHERS_SHARE * (last.at - first.at)
    return [
        process
        for process in last.processes
        if process.pid != still.process.pid
        and (before := first.process(process.pid)) is not None
        and _all_cpu(process) - _all_cpu(before) > max(least, 0.05)
    ]


def _all_cpu(process: Process) -> float:
    return sum(thread.cpu for thread in process.threads)


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
    inside = list(takewhile(lambda f: not f.file.endswith(_LOADING), still.thread.frames)) if still.sampling else []
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


# --- compared with other workers -----------------------------------------------------------------------------


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


# --- the sample in work --------------------------------------------------------------------------------------


def what_sample(flight: Flight) -> str:
    if not flight.fetching:
        return "drawing the next batch's indices from the sampler"
    if flight.collating:
        return "collating the batch"
    if flight.sample is not None or flight.sample_key:
        return f"sample {flight.sample_key if flight.sample is None else flight.sample}"
    return f"sample number {flight.position}" if flight.position is not None else "the sample"


def sample_seconds(still: Standstill, flight: Flight) -> float:
    """How long the sample in work has taken: by its own clock, and never longer than the standstill allows."""
    since = max(flight.moved, flight.since, flight.sample_since)
    return max(0.0, flight.read_at - since) if since else still.stall.standing


def sample_pace(case: Case) -> Pace:
    """All finished samples of the run, over all processes; quantiles are the largest of theirs."""
    paces = [p for f in case.flights if (p := f.paces.get("sample")) and p.count]
    return Pace(
        count=sum(p.count for p in paces),
        median=max((p.median for p in paces), default=0.0),
        p99=max((p.p99 for p in paces), default=0.0),
        longest=max((p.longest for p in paces), default=0.0),
    )


def far_outside(took: float, pace: Pace, ratio: float) -> bool:
    """A thousand times the 99th percentile; or, of many samples, a hundred times the longest there ever was."""
    if pace.count < MIN_SAMPLES:
        return False
    return took >= ratio * pace.p99 or (pace.count >= MANY_SAMPLES and took >= ratio / 10 * pace.longest)


def retrying_frame(still: Standstill) -> Frame | None:
    """The loop that catches its errors and tries again, by its source; only where attempts are not counted."""
    if still.sampling is None or not still.sampling.inferred:
        return None
    return next((f for f in still.thread.frames if f.user and f.tries), None)


def polled_path(still: Standstill) -> str:
    """Expression of the lock file that the innermost loop of the user's waits to be rid of; empty if none."""
    frame = next((f for f in still.thread.frames if f.user or f.polls), None)
    return frame.polls if frame else ""


def target_fact(still: Standstill) -> PathFact | None:
    """What is known of the file that was tried last."""
    flight, paths = still.flight, still.case.paths
    if flight is not None and flight.inferred:
        frame = retrying_frame(still)
        expression = frame.tries if frame else ""
        return next((f for f in paths if f.expression == expression and f.pid == still.process.pid), None)
    if flight is None or is_address(flight.attempt_target):
        return None
    return next((f for f in paths if f.path == flight.attempt_target), None)


def fails_again(still: Standstill) -> bool:
    """It opened or connected to something again and again within the sample, and the last try cannot succeed."""
    flight, fact = still.flight, target_fact(still)
    if flight is None or not (flight.inferred or flight.attempts >= MIN_ATTEMPTS):
        return False
    if fact is None:
        return not flight.inferred and is_address(flight.attempt_target)
    return bool(fact.error) or not fact.exists


def sleeps_again(still: Standstill) -> bool:
    """It slept, woke and slept again: by its own count, or by the kernel's between looks that found it asleep."""
    flight = still.flight
    if flight is not None and flight.sleeps >= 2:
        return True
    asleep = [t for _, t in looks_of(still) if t.wait is not None and t.wait.kind == "sleep"]
    return len(asleep) >= 2 and asleep[-1].switches - asleep[0].switches >= 2


def is_address(target: str) -> bool:
    host, _, port = target.rpartition(":")
    return bool(host) and port.isdigit()
