"""too-many-open-files: a process had no descriptor left.

What it sees
    EMFILE or ENFILE in the exception the run died of, or an exception of torch's way of handing tensors over, in
    a process that had as many descriptors open as it may have. Or main waits for a batch of a worker at its limit.

Why training stops
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
from typing import Any

from unstuck.model import Case, Finding, Fix, Process, Where
from unstuck.rules.death.died import Death, death
from unstuck.rules.death.errors import Error, error_of, spot
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
    error = crowded(end) if end is not None else None
    if end is None or error is None:
        return
    found = _counted(end, error)
    count, limit = found.get("open"), found.get("limit")
    kinds: dict[str, int] = found.get("kinds") or {}
    crowd = bool(count and limit and count >= 0.9 * limit)
    numbers = (
        f"{count:,} of {limit:,} descriptors" if crowd else f"all {limit:,} descriptors" if limit else "all it may"
    )
    source = error if error.user is not None else next((e for e in end.errors if e.user is not None), error)
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error",
        confidence=0.98 if error.errno in CROWDED else 0.93,
        title=f"too many open files: {_who(error, found)} had {numbers} in use",
        evidence=(
            f"`{error.said}` at {spot(source.user)}",
            f"{_who(error, found)} had {numbers} open at that moment"
            if crowd
            else f"its limit is {limit}; {count} were open when the exception had freed what it held",
            *([f"they are {_list(kinds)}"] if kinds else []),
            *_strategy(error, kinds),
            end.progress(),
        ),
        where=end.where(source.user, source),
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
        told = [error_of(f) for f in case.facts if f.kind == "sample-failed" and f.pid == worker.pid]
        error = next((e for e in told if e.errno in CROWDED), None)
        line = error.user if error is not None else None
        counted = (error.measured.get("descriptors") or {}) if error is not None else {}
        kinds: dict[str, int] = counted.get("kinds") or {}
        numbers = f"{worker.open_files:,} of {worker.open_files_limit:,} descriptors"
        yield Finding(
            rule=RULE.name,
            family=RULE.family,
            severity="error",
            confidence=0.95,
            title=f"too many open files: {who(worker)} has {numbers} in use and cannot hand over its batch",
            evidence=(
                f"main has waited for a batch for {seconds(still.stall.standing)}",
                f"{who(worker)} has {numbers} open",
                *([f"`{error.said}` there, at {spot(line)}"] if error is not None else []),
                *([f"they are {_list(kinds)}"] if kinds else []),
            ),
            where=Where(
                line.file if line else None,
                line.line if line else None,
                line.function if line else None,
                pid=worker.pid,
                worker=worker.worker,
                sample=error.data.get("sample") if error is not None else None,
            ),
            fix=Fix(_fix(kinds)),
            seen_by="kernel",
        )
        return


def _at_limit(process: Process) -> bool:
    return bool(process.open_files_limit) and (process.open_files or 0) >= (process.open_files_limit or 0) - NEAR


def crowded(end: Death) -> Error | None:
    """The error that says so: by its number, or by the count of descriptors where torch's error has no number."""
    named = next((e for e in end.errors if e.errno in CROWDED), None)
    if named is not None:
        return named
    for error in (end.sample, end.batch, end.error):
        if error is not None and error.type != "SystemExit" and any(e.passes(*SHARING) for e in error.whole):
            own = _of_workers(end, error)
            if own is not None:
                return own
            if _full(error.measured.get("descriptors") or {}) or _full_worker(error):
                return error
    return None


def _full(found: dict[str, Any]) -> bool:
    return bool(found.get("open")) and found["open"] >= found["limit"] - NEAR


def _full_worker(error: Error) -> dict[str, Any]:
    """A worker that had none left, as main counted: it could not hand its batch over."""
    return next((each for each in error.measured.get("crowded") or () if _full(each)), {})


def _of_workers(end: Death, error: Error) -> Error | None:
    """A worker's own error of that kind, which main did not get to see."""
    pids = [w["pid"] for w in error.data.get("workers") or ()]
    told = [error_of(f) for f in end.case.facts if f.kind in ("sample-failed", "thread-exception") and f.pid in pids]
    return next((e for e in reversed(told) if any(each.errno in CROWDED for each in e.whole)), None)


def _counted(end: Death, error: Error) -> dict[str, Any]:
    """Taken with that error; an inner one carries no count of its own."""
    for each in (error, end.sample, end.batch, end.error):
        if each is not None and error in each.whole and each.measured.get("descriptors"):
            found: dict[str, Any] = each.measured["descriptors"]
            return found if _full(found) else _full_worker(each) or found
    return {}


def _who(error: Error, found: dict[str, Any]) -> str:
    other = found.get("pid")
    if other is not None:
        numbers = {w["pid"]: w["worker"] for w in error.data.get("workers") or ()}
        return f"worker {numbers[other]} (pid {other})" if other in numbers else f"worker process {other}"
    number = error.data.get("worker")
    in_worker = number is not None and "workers" not in error.data
    return f"worker {number} (pid {error.pid})" if in_worker else f"the main process (pid {error.pid})"


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


def _strategy(error: Error, kinds: dict[str, int]) -> list[str]:
    named = error.measured.get("sharing")
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
