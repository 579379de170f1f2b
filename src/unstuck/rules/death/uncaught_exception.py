"""uncaught-exception: an exception that nothing caught, and that no other rule explains.

What it sees
    An exception ended the run, a process that the script started and without which the training could not go on, or a
    task of a pool or an executor that handed it over; or a worker exited by itself (`sys.exit`, `os._exit`).

Why it matters
    An exception without a `try` around it ends the process. A worker that exits leaves main without the batch it waits
    for, and main dies of that.

Evidence
    The exception, the innermost line of the user's own code in its traceback, what it came from, the step and the
    sample.

Fix
    That line, and the values it works on.

When it is wrong
    It says where, not why. `sys.exit` in the script itself is intended, and is never reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.deaths import Died, Raised, SampleFailed, TaskFailed
from unstuck.rules import scans
from unstuck.rules.death.post_mortem import (
    Death,
    WorkerEnd,
    death,
    exception_text,
    first_cause,
    frames_of,
    in_work,
    innermost,
    user_line,
    with_causes,
)
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, process_name

STEPS_OF_NAN = 8  # after a NaN loss: a distribution or a check of the script's own refuses NaN as soon as it meets it


def decide(case: Case) -> Iterable[Finding]:
    yield from scans.killing(RULE, case, by_signal=False)
    end = death(case)
    if end is None:
        return
    worker = next((worker for worker in end.fallen if worker.exited is not None or (worker.code or 0) > 0), None)
    died = end.died
    if worker is not None:
        yield _worker_exited(end, worker)
    elif end.sample is not None and end.sample.raised.type != "SystemExit":
        yield _raised(end, end.sample, end.sample.raised)
    elif died is not None and died.raised.type != "SystemExit":
        yield _raised(end, died, died.raised)
    elif died is not None and died.raised.chain:
        yield _raised(end, died, died.raised.chain[0])
    elif end.exit.signal is None:
        yield from _training_exited(end)


def _raised(end: Death, failed: Died | SampleFailed, raised: Raised) -> Finding:
    first = first_cause(raised)
    line, inner = user_line(first, *with_causes(raised)), innermost(first)
    work, starting = failed.in_work, isinstance(failed, SampleFailed) and failed.starting
    name = f"worker {work.worker}" if work.worker is not None and isinstance(failed, SampleFailed) else "the training"
    if end.flight is not None and end.flight.rank is not None:
        name = f"rank {end.flight.rank}"
    elif end.missed is not None:
        task = "a task in " if isinstance(failed, TaskFailed) else ""
        name = task + process_name(end.case, end.pid)
    return RULE.finding(
        severity="error",
        confidence=0.9 if end.certain else 0.75,
        title=f"{name} died of {first.type} at {place(line)}{' while it started' if starting else ''}",
        evidence=(
            f"`{exception_text(first)}`",
            f"raised inside {place(inner)}" if inner is not None and not inner.user else "",
            _came_from(raised, first),
            *first.notes[:2],
            f"sample {work.sample} was being fetched" if work.sample is not None else "",
            end.progress(),
        ),
        where=end.where(line, failed),
        fix=_fix(raised, starting),
        seen_by="exit",
    )


def _came_from(raised: Raised, first: Raised) -> str:
    if first is not raised:
        return f"it was raised again as `{exception_text(raised)}` at {place(user_line(raised))}"
    before = next((each for each in raised.chain if each.how == "context"), None)
    if before is None:
        return ""
    return f"it happened while `{exception_text(before)}` ({place(user_line(before))}) was being handled"


def _worker_exited(end: Death, worker: WorkerEnd) -> Finding:
    """By os._exit, by sys.exit, or of an exception outside a batch."""
    error, exited = worker.error, worker.exited
    lines = exited.frames if exited is not None else error.raised.frames if error is not None else []
    line = next((frame for frame in frames_of(lines) if frame.user), None)
    sample = in_work(exited or error).sample
    raised = error.raised if error is not None and error.raised.type != "SystemExit" and exited is None else None
    code = exited.code if exited is not None else worker.code
    call = "os._exit" if exited is not None else "sys.exit" if error is not None else "an exit"
    if raised is not None:
        how, proof = f"died of {raised.type}", f"`{exception_text(raised)}` in the worker"
        fix = "Fix what it died of; main only learns that the worker is gone."
    else:
        how, proof = f"exited with exit code {code}", f"{call} at {place(line)}, exit code {code}"
        fix = "Raise an exception instead of exiting: the worker hands it over to main, with its traceback."
    at = f" at {place(line)}" + (f" at sample {sample}" if sample is not None else "") if line is not None else ""
    return RULE.finding(
        severity="error",
        confidence=0.95 if line is not None else 0.8,
        title=f"{worker.name} {how}{at}",
        evidence=(
            proof,
            f"sample {sample} was being fetched" if sample is not None else "",
            f"main then died of `{exception_text(end.died.raised)}`" if end.died is not None else "",
            end.progress(),
        ),
        where=end.where(line, error if exited is None else None, worker),
        fix=fix,
        seen_by="exit",
    )


def _training_exited(end: Death) -> Iterable[Finding]:
    """By os._exit, with an exit code that says failure."""
    exited = next((left for left in end.case.left_by_exit if left.pid == end.pid), None)
    if exited is None or not exited.code:
        return
    line = next((frame for frame in frames_of(exited.frames) if frame.user), None)
    yield RULE.finding(
        severity="info",
        confidence=0.9,
        title=f"the training called os._exit({exited.code}) at {place(line)}",
        evidence=(f"os._exit({exited.code}) at {place(line)}", end.progress()),
        where=end.where(line),
        fix="If this is not intended, look at what leads to this line; `sys.exit` would run clean-up code too.",
        seen_by="exit",
    )


def _fix(raised: Raised, starting: bool) -> str:
    if any("device-side assert" in each.message for each in with_causes(raised)):
        return (
            "A GPU reports such an error later than it happens: run again with `CUDA_LAUNCH_BLOCKING=1`, or the same "
            "step on the CPU, to see the real line. An index or label out of range is the usual cause."
        )
    if starting:
        return "Fix what the worker runs when it starts: `worker_init_fn`, or the dataset's `__iter__`."
    return "Look at this line and at the values it works on."


RULE = Rule("uncaught-exception", "death", decide, last_resort=True, explained_within=STEPS_OF_NAN)
