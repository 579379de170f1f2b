"""too-many-open-files: a process ran out of file descriptors.

What it sees
    EMFILE or ENFILE in the exception that ended the run, or an exception where torch hands tensors over, in a process
    that had as many descriptors open as its limit allows. Or main waits for a batch of a worker at its limit.

Why it matters
    Every open file, pipe, socket and, with the sharing strategy `file_descriptor`, every tensor received from a worker
    and still kept takes one. At the limit nothing can be opened, not even the next batch: the run dies or hangs.

Evidence
    The number of open descriptors and the limit, counted in that process at that moment, and what they are.

Fix
    Close what piles up: the kind that leads the list. If they are tensors from workers, copy what is kept, or use the
    strategy `file_system`; raise the limit only if so many are really needed.

When it is wrong
    ENFILE is the limit of the whole machine: then somebody else may have used them up.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import replace

from unstuck.model import Case, Finding, Process
from unstuck.recorder.records.deaths import BatchFailed, Descriptors, Died, Failed, Raised, ThreadDied
from unstuck.rules.death.post_mortem import (
    Death,
    at_line,
    death,
    exception_text,
    goes_through,
    user_line,
    with_causes,
)
from unstuck.rules.hang.standstill import standstills
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, process_name, seconds, who

NONE_LEFT = (errno.EMFILE, errno.ENFILE)
NEAR_LIMIT = 12  # descriptors: torch itself gives up when ten more cannot be opened
SHARING = ("multiprocessing/reduction.py", "torch/multiprocessing/reductions.py", "torch/storage.py")


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome in ("running", "interrupted", "stopped"):
        yield from _hanging(case)
        return
    end = death(case)
    reported = _reported(end) if end is not None else None
    if end is None or reported is None:
        return
    failed, raised = reported
    counted = _counted(failed)
    count, limit = counted.open, counted.limit
    who_failed = process_name(case, counted.pid if counted.pid is not None else failed.pid)
    crowded = bool(limit and count >= 0.9 * limit)
    total = f"{limit:,}" if limit else "its"
    numbers = f"{count:,} of {total} descriptors" if crowded else f"all {total} descriptors"
    top, shown = next((pair for pair in (reported, *end.errors) if user_line(pair[1])), reported)
    line = user_line(shown)
    yield RULE.finding(
        severity="error",
        confidence=0.98 if raised.errno in NONE_LEFT else 0.93,
        title=f"too many open files: {who_failed} had {numbers} in use",
        evidence=(
            f"`{exception_text(raised)}` at {place(line)}",
            f"{who_failed} had {numbers} open at that moment"
            if crowded
            else f"its limit is {limit}; {count} were open after the exception had released what it held",
            _kinds_text(counted.kinds),
            _strategy(failed, counted.kinds),
            end.progress(),
        ),
        where=end.where(line, top),
        fix=_fix(counted.kinds),
        seen_by="exit",
    )


def _hanging(case: Case) -> Iterable[Finding]:
    """Main waits for a batch that a worker could not hand over: its queue drops what it has no descriptor for."""
    for still in standstills(case):
        full = [process for process in still.look.processes if process.role == "worker" and _at_limit(process)]
        if still.stall.phase != "data" or not full or not still.certain:
            continue
        worker = full[0]
        own = (failed for failed in case.samples_failed if failed.pid == worker.pid)
        failed = next((each for each in own if each.raised.errno in NONE_LEFT), None)
        line = user_line(failed.raised) if failed is not None else None
        kinds = _counted(failed).kinds if failed is not None else {}
        numbers = f"{worker.open_files:,} of {worker.open_files_limit:,} descriptors"
        sample = failed.in_work.sample if failed is not None else None
        yield RULE.finding(
            severity="error",
            confidence=0.95,
            title=f"too many open files: {who(worker)} has {numbers} in use and cannot hand over its batch",
            evidence=(
                f"main has waited for a batch for {seconds(still.stall.standing)}",
                f"{who(worker)} has {numbers} open",
                f"`{exception_text(failed.raised)}` there, at {place(line)}" if failed is not None else "",
                _kinds_text(kinds),
            ),
            where=replace(at_line(line), pid=worker.pid, worker=worker.worker, sample=sample),
            fix=_fix(kinds),
            seen_by="kernel",
        )
        return


def _at_limit(process: Process) -> bool:
    return bool(process.open_files_limit) and (process.open_files or 0) >= (process.open_files_limit or 0) - NEAR_LIMIT


def _reported(end: Death) -> tuple[Failed | ThreadDied, Raised] | None:
    """The error that says so: by its errno, or by the count of descriptors where torch's error has no errno. Of those
    that one process got while it handled the others, the first."""
    named = [pair for pair in end.errors if pair[1].errno in NONE_LEFT]
    if named:
        return [pair for pair in named if pair[0] is named[0][0]][-1]
    for failed in (end.sample, end.batch, end.died):
        if failed is None or failed.raised.type == "SystemExit":
            continue
        if any(goes_through(raised, *SHARING) for raised in with_causes(failed.raised)):
            own = _worker_error(end, failed)
            if own is not None:
                return own, own.raised
            if _full(failed.measured.descriptors) or any(map(_full, failed.measured.crowded)):
                return failed, failed.raised
    return None


def _worker_error(end: Death, failed: Failed) -> Failed | ThreadDied | None:
    """A worker's own error of that kind, which main never got."""
    pids = [exit_.pid for exit_ in failed.workers] if isinstance(failed, (BatchFailed, Died)) else []
    errors: list[Failed | ThreadDied] = [*end.case.samples_failed, *end.case.thread_deaths]
    own = [e for e in errors if e.pid in pids and any(r.errno in NONE_LEFT for r in with_causes(e.raised))]
    return max(own, key=lambda error: error.at, default=None)


def _full(counted: Descriptors | None) -> bool:
    return counted is not None and counted.open > 0 and counted.open >= counted.limit - NEAR_LIMIT


def _counted(failed: Failed | ThreadDied) -> Descriptors:
    """What was counted at that error: in the process itself, else in a worker that had none left."""
    if not isinstance(failed, Failed) or failed.measured.descriptors is None:
        return Descriptors()
    own = failed.measured.descriptors
    return own if _full(own) else next(filter(_full, failed.measured.crowded), own)


def _kinds_text(kinds: dict[str, int]) -> str:
    named = [f"{count:,} {_kind(kind, count)}" for kind, count in list(kinds.items())[:4]]
    return f"they are {', '.join(named)}" if named else ""


def _kind(kind: str, count: int) -> str:
    if kind == "/dev/shm":
        return "in shared memory (/dev/shm)"
    if kind.startswith("/"):
        return f"{'file' if count == 1 else 'files'} in {kind}"
    return kind if count == 1 or kind.startswith("of ") else f"{kind}s"


def _are_tensors(kinds: dict[str, int]) -> bool:
    return next(iter(kinds), "") in ("/dev/shm", "socket")


def _strategy(failed: Failed | ThreadDied, kinds: dict[str, int]) -> str:
    sharing = failed.measured.sharing if isinstance(failed, Failed) else ""
    if not sharing or not _are_tensors(kinds):
        return ""
    return f"torch's sharing strategy is {sharing}: each tensor from a worker that is kept holds one descriptor"


def _fix(kinds: dict[str, int]) -> str:
    first = next(iter(kinds), "")
    if _are_tensors(kinds):
        return (
            "Do not keep tensors that came from workers: keep `.clone()` or `.item()` of them. Or call "
            "`torch.multiprocessing.set_sharing_strategy('file_system')` at the start."
        )
    if first.startswith("/"):
        return (
            f"Close the files in {first} after reading: `with open(…) as file:`; keep paths in the dataset, not files."
        )
    if first:
        return f"Close the {_kind(first, 2)} that pile up as soon as they are no longer needed."
    return "Close what is opened, or raise the limit with `ulimit -n`."


RULE = Rule(
    "too-many-open-files",
    "death",
    decide,
    explains=frozenset({"waits-for-nobody", "waits-on-io", "progress-unknown", "shared-memory-full", "sample-raises"}),
)
