"""too-many-open-files: a process had no descriptor left.

What it sees
    EMFILE or ENFILE in the exception the run died of, or an exception of torch's way of handing tensors over, in
    a process that had as many descriptors open as it may have. Or main waits for a batch of a worker at its limit.

Why it matters
    Every open file, pipe, socket and, with the sharing strategy `file_descriptor`, every tensor received from a
    worker and still kept takes one. At the limit nothing can be opened, not even the next batch.

Evidence
    The number of open descriptors against the limit, counted in that process at that moment, and what they are.

Fix
    Close what piles up: the kind that leads the list. If they are tensors from workers, copy what is kept, or use
    the strategy `file_system`; raise the limit only if the number is meant.

When it is wrong
    ENFILE is the limit of the whole machine: then somebody else may have used them up.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Process, Where
from unstuck.recorder.records.deaths import (
    BatchFailed,
    Descriptors,
    Died,
    Failed,
    Raised,
    SampleFailed,
    ThreadDied,
    WorkerExit,
)
from unstuck.rules.death.died import Death, death
from unstuck.rules.death.errors import passes, said, spot, user_line, whole
from unstuck.rules.hang.standstill import standstills
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds, who

CROWDED = (errno.EMFILE, errno.ENFILE)
NEAR = 12  # torch itself gives up when ten more cannot be opened
SHARING = ("multiprocessing/reduction.py", "torch/multiprocessing/reductions.py", "torch/storage.py")


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome in ("running", "interrupted", "stopped"):
        yield from _standing(case)
        return
    end = death(case)
    found = crowded(end) if end is not None else None
    if end is None or found is None:
        return
    failed, raised = found
    counted = _counted(failed)
    count, limit, kinds = counted.open, counted.limit, counted.kinds
    crowd = bool(limit and count >= 0.9 * limit)
    numbers = (
        f"{count:,} of {limit:,} descriptors" if crowd else f"all {limit:,} descriptors" if limit else "all it may"
    )
    shown = next((pair for pair in (found, *end.errors) if user_line(pair[1])), found)
    line = user_line(shown[1])
    yield RULE.finding(
        severity="error",
        confidence=0.98 if raised.errno in CROWDED else 0.93,
        title=f"too many open files: {_who(failed, counted)} had {numbers} in use",
        evidence=(
            f"`{said(raised)}` at {spot(line)}",
            f"{_who(failed, counted)} had {numbers} open at that moment"
            if crowd
            else f"its limit is {limit}; {count} were open when the exception had freed what it held",
            *([f"they are {_list(kinds)}"] if kinds else []),
            *_strategy(failed, kinds),
            end.progress(),
        ),
        where=end.where(line, shown[0]),
        fix=Fix(_fix(kinds)),
        seen_by="exit",
    )


def _standing(case: Case) -> Iterable[Finding]:
    """Main waits for a batch that a worker could not hand over: its queue drops what it has no descriptor for."""
    for still in standstills(case):
        full = [p for p in still.look.processes if p.role == "worker" and _at_limit(p)]
        if still.stall.phase != "data" or not full or not still.certain:
            continue
        worker = full[0]
        own = [each for each in case.samples_failed if each.pid == worker.pid]
        failed = next((each for each in own if each.raised.errno in CROWDED), None)
        line = user_line(failed.raised) if failed is not None else None
        counted = failed.measured.descriptors if failed is not None else None
        kinds = counted.kinds if counted is not None else {}
        numbers = f"{worker.open_files:,} of {worker.open_files_limit:,} descriptors"
        yield RULE.finding(
            severity="error",
            confidence=0.95,
            title=f"too many open files: {who(worker)} has {numbers} in use and cannot hand over its batch",
            evidence=(
                f"main has waited for a batch for {seconds(still.stall.standing)}",
                f"{who(worker)} has {numbers} open",
                *([f"`{said(failed.raised)}` there, at {spot(line)}"] if failed is not None else []),
                *([f"they are {_list(kinds)}"] if kinds else []),
            ),
            where=Where(
                line.file if line else None,
                line.line if line else None,
                line.function if line else None,
                pid=worker.pid,
                worker=worker.worker,
                sample=failed.in_work.sample if failed is not None else None,
            ),
            fix=Fix(_fix(kinds)),
            seen_by="kernel",
        )
        return


def _at_limit(process: Process) -> bool:
    return bool(process.open_files_limit) and (process.open_files or 0) >= (process.open_files_limit or 0) - NEAR


def crowded(end: Death) -> tuple[Failed | ThreadDied, Raised] | None:
    """The error that says so: by its number, or by the count of descriptors where torch's error has no number."""
    named = next((pair for pair in end.errors if pair[1].errno in CROWDED), None)
    if named is not None:
        return named
    for failed in (end.sample, end.batch, end.died):
        if failed is None or failed.raised.type == "SystemExit":
            continue
        if any(passes(each, *SHARING) for each in whole(failed.raised)):
            own = _of_workers(end, failed)
            if own is not None:
                return own, own.raised
            if _full(failed.measured.descriptors) or _full_worker(failed) is not None:
                return failed, failed.raised
    return None


def _full(counted: Descriptors | None) -> bool:
    return counted is not None and counted.open > 0 and counted.open >= counted.limit - NEAR


def _full_worker(failed: Failed) -> Descriptors | None:
    """A worker that had none left, as main counted: it could not hand its batch over."""
    return next((each for each in failed.measured.crowded if _full(each)), None)


def _workers(failed: Failed | ThreadDied) -> list[WorkerExit]:
    return failed.workers if isinstance(failed, (BatchFailed, Died)) else []


def _of_workers(end: Death, failed: Failed) -> SampleFailed | ThreadDied | None:
    """A worker's own error of that kind, which main did not get to see."""
    pids = [exit_.pid for exit_ in _workers(failed)]
    told: list[SampleFailed | ThreadDied] = [*end.case.samples_failed, *end.case.thread_deaths]
    own = [each for each in told if each.pid in pids and any(e.errno in CROWDED for e in whole(each.raised))]
    return max(own, key=lambda each: each.at, default=None)


def _counted(failed: Failed | ThreadDied) -> Descriptors:
    """Taken with that error."""
    counted = failed.measured.descriptors if isinstance(failed, Failed) else None
    if not isinstance(failed, Failed) or counted is None or _full(counted):
        return counted or Descriptors()
    return _full_worker(failed) or counted


def _who(failed: Failed | ThreadDied, counted: Descriptors) -> str:
    other = counted.pid
    if other is not None:
        numbers = {exit_.pid: exit_.worker for exit_ in _workers(failed)}
        return f"worker {numbers[other]} (pid {other})" if other in numbers else f"worker process {other}"
    number = failed.in_work.worker if isinstance(failed, SampleFailed) else None
    return f"worker {number} (pid {failed.pid})" if number is not None else f"the main process (pid {failed.pid})"


def _list(kinds: dict[str, int]) -> str:
    named = [f"{count:,} {_kind(kind, count)}" for kind, count in list(kinds.items())[:4]]
    return ", ".join(named)


def _kind(kind: str, count: int) -> str:
    if kind == "/dev/shm":
        return "in shared memory (/dev/shm)"
    if kind.startswith(("/", "of ")):
        return kind if kind.startswith("of ") else f"{'file' if count == 1 else 'files'} in {kind}"
    return kind if count == 1 else f"{kind}s"


def _leads(kinds: dict[str, int]) -> str:
    return next(iter(kinds), "")


def _strategy(failed: Failed | ThreadDied, kinds: dict[str, int]) -> list[str]:
    named = failed.measured.sharing if isinstance(failed, Failed) else ""
    if named and _leads(kinds) in ("/dev/shm", "socket"):
        return [f"torch's sharing strategy is {named}: each tensor from a worker that is kept holds one descriptor"]
    return []


def _fix(kinds: dict[str, int]) -> str:
    lead = _leads(kinds)
    if lead in ("/dev/shm", "socket"):
        return (
            "Do not keep tensors that came from workers: keep `.clone()` or `.item()` of them. Or call "
            "`torch.multiprocessing.set_sharing_strategy('file_system')` at the start."
        )
    if lead.startswith("/"):
        return (
            f"Close the files in {lead} after reading: `with open(…) as file:`; keep paths in the data set, not files."
        )
    if lead:
        return f"Close the {_kind(lead, 2)} that pile up when they are done with."
    return "Close what is opened, or raise the limit with `ulimit -n`."


RULE = Rule(
    "too-many-open-files", "death", decide, explains=frozenset(("waits-for-nobody", "waits-on-io", "progress-unknown"))
)
