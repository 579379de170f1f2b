"""disk-full: the disk was full, and a file could not be written.

What it sees
    ENOSPC or EDQUOT in the exception that ended the run; or a failure inside `torch.save`, whose own error has no
    errno, while the file system it wrote to was measured to be full.

Why it matters
    A checkpoint, a log line or a cached file cannot be written, and the exception ends the run.

Evidence
    The file, the file system it is on, its size and the space left on it, measured when it happened.

Fix
    Free space, or write elsewhere; keep the last few checkpoints only, and write each to a temporary name first, so
    that a full disk never costs the last good one.

When it is wrong
    With a quota (EDQUOT) the disk itself may have space. `/dev/shm` is `shared-memory-full`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.deaths import Failed, FileSystem
from unstuck.rules.death.post_mortem import (
    death,
    exception_text,
    file_system,
    goes_through,
    user_line,
    wants_shared_memory,
    with_causes,
)
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, size

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    failed = next((each for each in (end.sample, end.died) if each and _no_space(each)), None) if end else None
    if end is None or failed is None:
        return
    disk = file_system(failed) or FileSystem(path=next(iter(failed.raised.files), ""))
    mount = disk.mount or "the disk"
    errnos = {raised.errno for raised in with_causes(failed.raised)}
    top, raised = next((pair for pair in end.errors if user_line(pair[1])), (failed, failed.raised))
    line = user_line(raised)
    what = "the disk quota is used up" if errno.EDQUOT in errnos else f"{mount} is full"
    yield RULE.finding(
        severity="error",
        confidence=0.98 if errnos.intersection(NO_SPACE) else 0.93,
        title=f"{what}: {os.path.basename(disk.path) or 'a file'} could not be written",
        evidence=(
            f"`{exception_text(raised)}` at {place(line)}",
            f"it was writing {disk.path}" if disk.path else "",
            _measured(disk) if disk.size else "",
            end.progress(),
        ),
        where=end.where(line, top),
        fix=f"Free space on {mount}, or write elsewhere. Keep only the last checkpoints, and "
        "write each to a temporary name first and rename it, so that the last good one survives.",
        seen_by="exit",
    )


def _no_space(failed: Failed) -> bool:
    if wants_shared_memory(failed):
        return False
    chain, disk = with_causes(failed.raised), file_system(failed)
    if any(raised.errno in NO_SPACE for raised in chain):
        return True
    saving = any(goes_through(raised, "torch/serialization.py", function="save") for raised in chain)
    return saving and disk is not None and disk.full


def _measured(disk: FileSystem) -> str:
    kind = f" ({disk.kind})" if disk.kind else ""
    inodes = " but no inode left" if disk.no_inodes else ""
    return f"{disk.mount}{kind} had {size(disk.free)} of {size(disk.size)} free{inodes}"


RULE = Rule("disk-full", "death", decide, explains=frozenset({"sample-raises"}))
