"""sample-raises: one sample raised an exception, and nobody caught it.

What it sees
    An exception came out of the data set, a transform or `collate_fn` while a batch was made, in a worker or in
    main, and the run died of it.

Why training stops
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
from unstuck.rules.death.died import death
from unstuck.rules.death.disk_full import no_room
from unstuck.rules.death.errors import Error, spot
from unstuck.rules.death.shared_memory_full import shortage
from unstuck.rules.death.too_many_open_files import crowded
from unstuck.rules.rule import Rule

OTHERS = ("SystemExit", "MemoryError", "OutOfMemoryError", "GeneratorExit")


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    error = end.sample if end is not None else None
    if end is None or error is None or error.type in OTHERS or error.data.get("starting"):
        return
    if crowded(end) is not None or no_room(end) is not None or shortage(end) is not None:
        return
    what = sample(error)
    file = opened(error)
    number = error.data.get("worker")
    who = f"worker {number} (pid {error.pid})" if number is not None else f"the main process (pid {error.pid})"
    origin = error.origin
    line = next((e.user for e in (origin, *error.whole) if e.user is not None), None)
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error",
        confidence=0.97 if end.certain else 0.8,
        title=f"{what} raised {origin.type} at {spot(line)}" + (f", reading {os.path.basename(file)}" if file else ""),
        evidence=(
            f"`{origin.said}` in {who}" + (f", raised inside {spot(origin.frames[0])}" if _deeper(origin) else ""),
            _which(error),
            *([f"the last file it opened is {file}"] if file else []),
            *([] if end.certain else ["the script caught the error and left with an exit code of its own"]),
            end.progress(),
        ),
        where=end.where(line, error),
        fix=Fix(_fix(error, what, file)),
        seen_by="exit",
    )


def sample(error: Error) -> str:
    if error.data.get("collating"):
        return "collating a batch"
    index = error.data.get("sample")
    if index is not None:
        return f"sample {index}"
    return f"sample {error.data['key']}" if error.data.get("key") else "a sample"


def opened(error: Error) -> str:
    """The file it could not read, or opened last."""
    named = next((name for each in error.whole for name in each.files), "")
    return named or str(error.data.get("opened") or "")


def _which(error: Error) -> str:
    what, place = sample(error), error.data.get("position")
    at = f", number {place} of its batch" if place is not None else ""
    before = error.data.get("step")
    return f"it was {what}{at}" + (f", fetched when {before} steps had been made" if before else "")


def _deeper(error: Error) -> bool:
    return bool(error.frames) and not error.frames[0].user


def _fix(error: Error, what: str, file: str) -> str:
    if error.data.get("collating"):
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
