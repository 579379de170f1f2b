"""uncaught-exception: an exception that nobody caught, and that no other rule explains.

What it sees
    The run died of an exception, or a worker of it ended itself (`sys.exit`, `os._exit`).

Why training stops
    An exception without a `try` around it ends the process. A worker that ends itself leaves main without the batch
    it waits for.

Evidence
    The exception, the last line of the user's own code on its way, what it came from, the step and the sample.

Fix
    That line, and what it was given.

When it is wrong
    It says where, not why. `sys.exit` in the script itself is an end that was meant, and is never reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.death.died import Death, WorkerEnd, death
from unstuck.rules.death.errors import Error, frames_of, spot
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    if end is None:
        return
    worker = next((w for w in end.fallen if w.left is not None or (w.code or 0) > 0), None)
    if worker is not None:
        yield _worker_left(end, worker)
    elif end.sample is not None and end.sample.type != "SystemExit":
        yield _raised(end, end.sample)
    elif end.error is not None and end.error.type != "SystemExit":
        yield _raised(end, end.error)
    elif end.error is not None and end.error.chain:
        yield _raised(end, end.error.chain[0])
    elif end.exit.signal is None:
        yield from _left_itself(end)


def _raised(end: Death, error: Error) -> Finding:
    origin = error.origin
    line = next((e.user for e in (origin, *error.whole) if e.user is not None), None)
    number = error.data.get("worker")
    starting = error.data.get("starting")
    who = f"worker {number}" if number is not None and "workers" not in error.data else "the training"
    if end.flight is not None and end.flight.rank is not None:
        who = f"rank {end.flight.rank}"
    doing = " while it started" if starting else ""
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error",
        confidence=0.9 if end.certain else 0.75,
        title=f"{who} died of {origin.type} at {spot(line)}{doing}",
        evidence=(
            f"`{origin.said}`",
            *([f"raised inside {spot(origin.frames[0])}"] if origin.frames and not origin.frames[0].user else []),
            *_came_from(error, origin),
            *[str(note) for note in (origin.data.get("notes") or ())[:2]],
            *([f"sample {error.data['sample']} was in work"] if error.data.get("sample") is not None else []),
            end.progress(),
        ),
        where=end.where(line, error),
        fix=Fix(_fix(error)),
        seen_by="exit",
    )


def _came_from(error: Error, origin: Error) -> list[str]:
    if origin is not error:
        return [f"it was raised again as `{error.said}` at {spot(error.user)}"]
    before = next((e for e in error.chain if e.data.get("how") == "context"), None)
    return [f"it happened while `{before.said}` ({spot(before.user)}) was being handled"] if before is not None else []


def _worker_left(end: Death, worker: WorkerEnd) -> Finding:
    """A worker that ended itself: by os._exit, by sys.exit, or of an exception outside a batch."""
    error = worker.error
    frames = frames_of(worker.left.data) if worker.left is not None else error.frames if error is not None else ()
    line = next((f for f in frames if f.user), None)
    told = worker.left.data if worker.left is not None else error.data if error is not None else {}
    sample = told.get("sample")
    on = f" on sample {sample}" if sample is not None else ""
    code = worker.left.data.get("code") if worker.left is not None else worker.code
    raised = error is not None and error.type != "SystemExit" and worker.left is None
    how = f"died of {error.type}" if raised and error is not None else f"ended itself with exit code {code}"
    call = "os._exit" if worker.left is not None else "sys.exit" if error is not None else "an exit"
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error",
        confidence=0.95 if line is not None else 0.8,
        title=f"{worker.who} {how} at {spot(line)}{on}" if line is not None else f"{worker.who} {how}",
        evidence=(
            f"`{error.said}` in the worker"
            if raised and error is not None
            else f"{call} at {spot(line)}, exit code {code}",
            *([f"sample {sample} was in work"] if sample is not None else []),
            *([f"main then died of `{end.error.said}`"] if end.error is not None else []),
            end.progress(),
        ),
        where=end.where(line, error if worker.left is None else None, worker),
        fix=Fix(
            "Mend what it died of; main only learns that the worker is gone."
            if raised
            else "Raise an exception instead of leaving: the worker hands it over to main, with its traceback."
        ),
        seen_by="exit",
    )


def _left_itself(end: Death) -> Iterable[Finding]:
    """The training ended itself by os._exit with an exit code that says failure."""
    left = next((f for f in end.case.facts if f.kind == "left" and f.pid == end.pid), None)
    if left is None or not left.data.get("code"):
        return
    line = next((f for f in frames_of(left.data) if f.user), None)
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="info",
        confidence=0.9,
        title=f"the training ended itself with os._exit({left.data['code']}) at {spot(line)}",
        evidence=(f"os._exit({left.data['code']}) at {spot(line)}", end.progress()),
        where=end.where(line),
        fix=Fix("If this end was not meant, look at what led to this line; `sys.exit` would run clean-up code too."),
        seen_by="exit",
    )


def _fix(error: Error) -> str:
    if any("device-side assert" in each.message for each in error.whole):
        return (
            "A device reports such a fault later than it happens: run again with `CUDA_LAUNCH_BLOCKING=1`, or the same "
            "step on the CPU, to see the real line. An index or label out of range is the usual cause."
        )
    if error.data.get("starting"):
        return "Mend what the worker runs when it starts: `worker_init_fn`, or the data set's `__iter__`."
    return "Look at this line and at what it was given."


RULE = Rule("uncaught-exception", "death", decide, last_resort=True)
