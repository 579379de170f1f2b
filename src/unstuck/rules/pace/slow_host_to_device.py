"""slow-host-to-device: batches are copied to the GPU from memory that is not pinned, and the copies are slow.

What it sees
    A training on a GPU whose loader does not pin its batches, and copies that take longer than from pinned memory, by
    a tenth of the time of a step or more. It raises a question; it does not decide.

Why it matters
    A copy from ordinary memory goes through a small buffer of the driver's, and meanwhile neither the training process
    nor the GPU does anything else.

Evidence
    A piece of three batches, copied to the GPU on a stream of its own, from the batch's own memory and from pinned
    memory; the size of a batch; the time of a step. That is no proof: pinning takes processor time and memory bandwidth
    of its own, and made some measured trainings slower.

Fix
    `pin_memory=True` on the loader, and `.to(device, non_blocking=True)`; then measure.

When it is wrong
    Pinning is no gain if the training waits for data as well, if pinning would take as long as a step, or if there are
    no workers: then nothing is asked. Nothing is measured for a batch that no layer on the GPU gets, on a GPU that is
    nearly full, on a CPU, for small batches and for pinned ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Question
from unstuck.recorder.records.loaders import GpuCopies
from unstuck.rules.loader_reports import latest
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds, size

MIN_GAIN_SHARE = 0.1  # of a step
MAX_WAIT_SHARE = 0.05  # of the time, waited for data
MAX_PINNING_SHARE = 0.7  # of a step: the thread that pins must keep up


def decide(case: Case) -> Iterable[Question]:
    reports = [report for report in latest(case, case.gpu_copies) if _may_help(report.state)]
    report = max(reports, key=lambda each: _gain(each.state), default=None)
    if report is None or _gain(report.state) < MIN_GAIN_SHARE:
        return
    copies = report.state
    yield Question(
        RULE.name,
        f"whether the training at {report.line} would be faster with pinned batches: copying {size(copies.bytes)} to "
        f"the GPU takes {seconds(copies.ordinary)} as it is and {seconds(copies.pinned)} from pinned memory, "
        f"{_gain(copies):.0%} of a step less",
        "the same training with pin_memory=True and .to(device, non_blocking=True)",
    )


def _may_help(copies: GpuCopies) -> bool:
    """With workers, a thread in the training process pins the batches."""
    if not (copies.moved and copies.trains and copies.workers) or copies.waits >= MAX_WAIT_SHARE:
        return False
    return copies.pinning < MAX_PINNING_SHARE * copies.period


def _gain(copies: GpuCopies) -> float:
    """Share of a step by which copying takes longer than it needs to."""
    return min(1.0, (copies.ordinary - copies.pinned) / max(1e-9, copies.period))


RULE = Rule("slow-host-to-device", "pace", decide, asks_only=True)
