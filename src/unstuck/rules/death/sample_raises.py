"""sample-raises: one sample raised an exception, and nobody caught it.

What it sees
    An exception came out of the data set, a transform or `collate_fn` while a batch was made, in a worker or in
    main, and the run died of it.

Why it matters
    A worker hands the exception over to main, which raises it again where the next batch is asked for. The batch
    is lost, and without a `try` the run is.

Evidence
    The exception as it was raised, with its line; the sample's index, and the file that sample opened last.

Fix
    Look at that sample. If bad data must be lived with, catch the error in `__getitem__`, name the sample, and give
    another one instead.

When it is wrong
    A fault of the code rather than of the data fails on every sample: then the sample named is only the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.deaths import Raised, SampleFailed
from unstuck.rules.death.died import death
from unstuck.rules.death.disk_full import no_room
from unstuck.rules.death.errors import inner_frame, origin, said, spot, user_line, whole
from unstuck.rules.death.shared_memory_full import shortage
from unstuck.rules.death.too_many_open_files import crowded
from unstuck.rules.rule import Rule

OTHERS = ("SystemExit", "MemoryError", "OutOfMemoryError", "GeneratorExit")


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    failed = end.sample if end is not None else None
    if end is None or failed is None or failed.raised.type in OTHERS or failed.starting:
        return
    if crowded(end) is not None or no_room(end) is not None or shortage(end) is not None:
        return
    what, file = sample(failed), opened(failed)
    number = failed.in_work.worker
    who = f"worker {number} (pid {failed.pid})" if number is not None else f"the main process (pid {failed.pid})"
    first = origin(failed.raised)
    line = user_line(first, *whole(failed.raised))
    yield RULE.finding(
        severity="error",
        confidence=0.97 if end.certain else 0.8,
        title=f"{what} raised {first.type} at {spot(line)}" + (f", reading {os.path.basename(file)}" if file else ""),
        evidence=(
            f"`{said(first)}` in {who}" + _deeper(first),
            _which(failed),
            *([f"the last file it opened is {file}"] if file else []),
            *([] if end.certain else ["the script caught the error and left with an exit code of its own"]),
            end.progress(),
        ),
        where=end.where(line, failed),
        fix=Fix(_fix(failed, what, file)),
        seen_by="exit",
    )


def sample(failed: SampleFailed) -> str:
    work = failed.in_work
    if work.collating:
        return "collating a batch"
    if work.sample is not None:
        return f"sample {work.sample}"
    return f"sample {work.key}" if work.key else "a sample"


def opened(failed: SampleFailed) -> str:
    """The file it could not read, or opened last."""
    named = next((name for each in whole(failed.raised) for name in each.files), "")
    return named or failed.in_work.opened


def _which(failed: SampleFailed) -> str:
    at = f", number {failed.position} of its batch" if failed.position is not None else ""
    before = f", fetched when {failed.step} steps had been made" if failed.step else ""
    return f"it was {sample(failed)}{at}{before}"


def _deeper(raised: Raised) -> str:
    inner = inner_frame(raised)
    return f", raised inside {spot(inner)}" if inner is not None and not inner.user else ""


def _fix(failed: SampleFailed, what: str, file: str) -> str:
    if failed.in_work.collating:
        return (
            "Make the samples of a batch fit together (same shapes and types), or give the DataLoader a `collate_fn` "
            "that pads or groups them."
        )
    look = f"Look at {what}" + (f" ({file})" if file else "")
    return (
        f"{look}: mend it or leave it out. To live with bad data, catch the error in `__getitem__`, log the index, "
        "and return another sample."
    )


RULE = Rule("sample-raises", "death", decide)
