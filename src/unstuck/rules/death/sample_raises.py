"""sample-raises: one sample raised an exception, and nothing caught it.

What it sees
    An exception came out of the dataset, a transform or `collate_fn` while a batch was being made, in a worker or in
    main, and it ended the run.

Why it matters
    A worker hands the exception over to main, which raises it again where it fetches the next batch. The batch is
    lost, and without a `try` the run ends.

Evidence
    The exception with its line; the sample's index, and the file that sample opened last.

Fix
    Look at that sample. If bad data cannot be avoided, catch the error in `__getitem__`, log the sample, and return
    another one instead.

When it is wrong
    A bug in the code rather than in the data fails on every sample: then the sample named is only the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.deaths import SampleFailed
from unstuck.rules import scans
from unstuck.rules.death.post_mortem import death, exception_text, first_cause, innermost, user_line, with_causes
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, process_name

NO_FAULT_OF_A_SAMPLE = ("SystemExit", "MemoryError", "OutOfMemoryError", "GeneratorExit")


def decide(case: Case) -> Iterable[Finding]:
    yield from scans.raising(RULE, case)
    end = death(case)
    failed = end.sample if end is not None else None
    if end is None or failed is None or failed.raised.type in NO_FAULT_OF_A_SAMPLE or failed.starting:
        return
    first, what, file = first_cause(failed.raised), _sample(failed), _opened(failed)
    line, inner = user_line(first, *with_causes(failed.raised)), innermost(first)
    inside = f", raised inside {place(inner)}" if inner is not None and not inner.user else ""
    position = f", number {failed.position} of its batch" if failed.position is not None else ""
    step = f", fetched after {failed.step} steps" if failed.step else ""
    yield RULE.finding(
        severity="error",
        confidence=0.97 if end.certain else 0.8,
        title=f"{what} raised {first.type} at {place(line)}" + (f", reading {os.path.basename(file)}" if file else ""),
        evidence=(
            f"`{exception_text(first)}` in {process_name(case, failed.pid)}{inside}",
            f"it was {what}{position}{step}",
            f"the last file it opened is {file}" if file else "",
            "" if end.certain else "the script caught the error and exited with an exit code of its own",
            end.progress(),
        ),
        where=end.where(line, failed),
        fix=_fix(failed, what, file),
        seen_by="exit",
    )


def _sample(failed: SampleFailed) -> str:
    work = failed.in_work
    if work.collating:
        return "collating a batch"
    sample = work.sample if work.sample is not None else work.key
    return f"sample {sample}" if sample != "" else "a sample"


def _opened(failed: SampleFailed) -> str:
    """The file it could not read, or opened last."""
    named = (name for raised in with_causes(failed.raised) for name in raised.files)
    return next(named, failed.in_work.opened)


def _fix(failed: SampleFailed, what: str, file: str) -> str:
    if failed.in_work.collating:
        return (
            "Make the samples of a batch fit together (same shapes and types), or give the DataLoader a `collate_fn` "
            "that pads or groups them."
        )
    return (
        f"Look at {what}{f' ({file})' if file else ''}: repair or drop it. If bad data cannot be avoided, catch the "
        "error in `__getitem__`, log the index, and return another sample."
    )


RULE = Rule("sample-raises", "death", decide)
