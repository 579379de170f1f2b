"""uncaught-exception: an exception that nobody caught, and that no other rule explains.

What it sees
    The run died of an exception, or a worker of it ended itself (`sys.exit`, `os._exit`).

Why it matters
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
from unstuck.recorder.records.deaths import Died, Raised, SampleFailed
from unstuck.rules.death.died import Death, WorkerEnd, death, in_work
from unstuck.rules.death.errors import frames_of, inner_frame, origin, said, spot, user_line, whole
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    if end is None:
        return
    worker = next((w for w in end.fallen if w.left is not None or (w.code or 0) > 0), None)
    if worker is not None:
        yield _worker_left(end, worker)
    elif end.sample is not None and end.sample.raised.type != "SystemExit":
        yield _raised(end, end.sample, end.sample.raised)
    elif end.died is not None and end.died.raised.type != "SystemExit":
        yield _raised(end, end.died, end.died.raised)
    elif end.died is not None and end.died.raised.chain:
        yield _raised(end, end.died, end.died.raised.chain[0])
    elif end.exit.signal is None:
        yield from _left_itself(end)


def _raised(end: Death, failed: Died | SampleFailed, raised: Raised) -> Finding:
    first = origin(raised)
    line, inner = user_line(first, *whole(raised)), inner_frame(first)
    work, starting = failed.in_work, isinstance(failed, SampleFailed) and failed.starting
    who = f"worker {work.worker}" if work.worker is not None and isinstance(failed, SampleFailed) else "the training"
    if end.flight is not None and end.flight.rank is not None:
        who = f"rank {end.flight.rank}"
    doing = " while it started" if starting else ""
    return RULE.finding(
        severity="error",
        confidence=0.9 if end.certain else 0.75,
        title=f"{who} died of {first.type} at {spot(line)}{doing}",
        evidence=(
            f"`{said(first)}`",
            *([f"raised inside {spot(inner)}"] if inner is not None and not inner.user else []),
            *_came_from(raised, first),
            *first.notes[:2],
            *([f"sample {work.sample} was in work"] if work.sample is not None else []),
            end.progress(),
        ),
        where=end.where(line, failed),
        fix=Fix(_fix(raised, starting)),
        seen_by="exit",
    )


def _came_from(raised: Raised, first: Raised) -> list[str]:
    if first is not raised:
        return [f"it was raised again as `{said(raised)}` at {spot(user_line(raised))}"]
    before = next((e for e in raised.chain if e.how == "context"), None)
    if before is None:
        return []
    return [f"it happened while `{said(before)}` ({spot(user_line(before))}) was being handled"]


def _worker_left(end: Death, worker: WorkerEnd) -> Finding:
    """A worker that ended itself: by os._exit, by sys.exit, or of an exception outside a batch."""
    error, left = worker.error, worker.left
    lines = left.frames if left is not None else error.raised.frames if error is not None else []
    line = next((frame for frame in frames_of(lines) if frame.user), None)
    sample = in_work(left or error).sample
    on = f" on sample {sample}" if sample is not None else ""
    code = left.code if left is not None else worker.code
    raised = error.raised if error is not None and error.raised.type != "SystemExit" and left is None else None
    how = f"died of {raised.type}" if raised is not None else f"ended itself with exit code {code}"
    call = "os._exit" if left is not None else "sys.exit" if error is not None else "an exit"
    main = end.died
    return RULE.finding(
        severity="error",
        confidence=0.95 if line is not None else 0.8,
        title=f"{worker.who} {how} at {spot(line)}{on}" if line is not None else f"{worker.who} {how}",
        evidence=(
            f"`{said(raised)}` in the worker" if raised is not None else f"{call} at {spot(line)}, exit code {code}",
            *([f"sample {sample} was in work"] if sample is not None else []),
            *([f"main then died of `{said(main.raised)}`"] if main is not None else []),
            end.progress(),
        ),
        where=end.where(line, error if left is None else None, worker),
        fix=Fix(
            "Mend what it died of; main only learns that the worker is gone."
            if raised is not None
            else "Raise an exception instead of leaving: the worker hands it over to main, with its traceback."
        ),
        seen_by="exit",
    )


def _left_itself(end: Death) -> Iterable[Finding]:
    """The training ended itself by os._exit with an exit code that says failure."""
    left = next((each for each in end.case.left_by_exit if each.pid == end.pid), None)
    if left is None or not left.code:
        return
    line = next((frame for frame in frames_of(left.frames) if frame.user), None)
    yield RULE.finding(
        severity="info",
        confidence=0.9,
        title=f"the training ended itself with os._exit({left.code}) at {spot(line)}",
        evidence=(f"os._exit({left.code}) at {spot(line)}", end.progress()),
        where=end.where(line),
        fix=Fix("If this end was not meant, look at what led to this line; `sys.exit` would run clean-up code too."),
        seen_by="exit",
    )


def _fix(raised: Raised, starting: bool) -> str:
    if any("device-side assert" in each.message for each in whole(raised)):
        return (
            "A device reports such a fault later than it happens: run again with `CUDA_LAUNCH_BLOCKING=1`, or the same "
            "step on the CPU, to see the real line. An index or label out of range is the usual cause."
        )
    if starting:
        return "Mend what the worker runs when it starts: `worker_init_fn`, or the data set's `__iter__`."
    return "Look at this line and at what it was given."


RULE = Rule("uncaught-exception", "death", decide, last_resort=True)
