"""slow-host-to-device: batches are copied to the GPU out of memory that is not pinned, and that takes its time.

What it sees
    A training on a GPU whose loader does not pin its batches, and a tenth of the time of a step or more that copying a
    batch takes longer than out of pinned memory. It asks; it does not decide.

Why it matters
    It crawls: a copy out of ordinary memory goes through a small buffer of the driver's, and neither the training
    process nor the GPU does anything else meanwhile.

Evidence
    A piece of three batches, copied to the GPU on a stream of its own, out of the batch's own memory and out of pinned
    memory; the size of a batch; the time of a step. That is no proof: pinning takes processor time and memory traffic
    of its own, and trainings were measured that became slower by it.

Fix
    `pin_memory=True` on the loader, and `.to(device, non_blocking=True)`; then measure.

When it is wrong
    Where the training waits for data as well nothing is asked, nor where pinning would take as long as a step, or there
    are no workers: then pinning is no gain. A batch that no layer on the GPU is given, a GPU that is nearly full,
    trainings on a CPU, small batches and pinned ones: there nothing is measured.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Question
from unstuck.recorder.records.loaders import GpuCopies
from unstuck.rules.loader_reports import latest
from unstuck.rules.pace.measured import COSTLY
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds, size

WAITS = 0.05
"""Share of the time that may be waited for data."""
KEEPS_UP = 0.7
"""Of the time of a step: what pinning a batch may take."""


def decide(case: Case) -> Iterable[Question]:
    known = [about for about in latest(case, case.gpu_copies) if _may_help(about.state)]
    about = max(known, key=lambda each: _share(each.state), default=None)
    if about is None or _share(about.state) < COSTLY:
        return
    copies = about.state
    yield Question(
        RULE.name,
        f"whether the training at {about.line} would be faster with pinned batches: one of {size(copies.bytes)} "
        f"takes {seconds(copies.ordinary)} to the GPU as it is and {seconds(copies.pinned)} out of pinned memory, "
        f"{_share(copies):.0%} of a step less",
        "the same training with pin_memory=True and .to(device, non_blocking=True)",
    )


def _may_help(copies: GpuCopies) -> bool:
    """Batches are pinned by a thread beside the training, where there are workers: it must keep up."""
    if not (copies.moved and copies.trains and copies.workers) or copies.waits >= WAITS:
        return False
    return copies.pinning < KEEPS_UP * copies.period


def _share(copies: GpuCopies) -> float:
    """Of a step: what copying takes longer than it need."""
    return min(1.0, (copies.ordinary - copies.pinned) / max(1e-9, copies.period))


RULE = Rule("slow-host-to-device", "pace", decide, asks_only=True)
