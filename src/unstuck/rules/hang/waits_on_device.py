"""waits-on-device: the line waits for the accelerator to finish.

What it sees
    The main thread of a process that uses a device is, blocked or burning CPU, in one call that must wait for the
    device (`.item()`, `.cpu()`, `synchronize()`), and its Python line never changes.

Why it matters
    Work on a device is queued, and the first line that needs a result waits for all of it. If something queued
    earlier never ends (a collective that another rank did not join, a kernel in a loop), this line waits forever.

Evidence
    The call, the device, how long, and that every stack sample found the same line.

Fix
    Look for the collective or kernel queued before this line; `CUDA_LAUNCH_BLOCKING=1` makes its own line wait.

When it is wrong
    A long kernel. Reported only after a very long time, at Ctrl-C, or by `unstuck attach`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.rules.hang.blocked import lost_in_fork
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.hang.waiting import collective_call
from unstuck.rules.hang.work import looks_of, stack_varies
from unstuck.rules.rule import Rule
from unstuck.rules.words import place

_SYNCING = re.compile(
    r"\.(item|cpu|tolist|numpy|synchronize|nonzero|to|wait)\(|torch\.cuda\.|torch\.save\(|float\(|int\(|bool\(|print\("
)
_NATIVE = re.compile(r"cu(Stream|Event)Synchronize|cuda(Stream|Device)Synchronize|hipStreamSynchronize")


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        if not _on_device(still) or not still.long:
            continue
        yield still.finding(
            RULE,
            title=f"{still.who} is waiting for its device at {place(still.frame)}",
            evidence=(
                f"it has been in this one call for {still.lasting}; {len(looks_of(still))} stack samples found the "
                "same line",
                "the process has an accelerator open, and the line needs a result from it",
            ),
            fix="Find what was queued before this line; run once with CUDA_LAUNCH_BLOCKING=1 to see its own line wait.",
            seen_by=still.stacks_by,
        )


def _on_device(still: Standstill) -> bool:
    if not still.process.device or collective_call(still.thread) or stack_varies(still) or still.sampling:
        return False
    if lost_in_fork(still):  # it has its parent's accelerator open, and none of the threads that would work with it
        return False
    if still.kind == "device" or any(_NATIVE.search(name) for name in still.thread.native):
        return True
    code = still.frame.code if still.frame else ""
    return still.kind in ("running", "poll", "lock", "other") and bool(_SYNCING.search(code))


RULE = Rule("waits-on-device", "hang", decide, disproved_by_end=True)
