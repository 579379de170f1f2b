"""disk-full: there was no room for what the run wrote.

What it sees
    ENOSPC or EDQUOT in the exception the run died of; or a failure inside `torch.save`, whose own error has no
    number, while the file system it wrote to was measured to be full.

Why it matters
    A checkpoint, a log line or a cached file cannot be written, and the exception is not caught.

Evidence
    The file, the file system it lies on, its size and the room left on it, measured when it happened.

Fix
    Make room, or write elsewhere; keep the last few checkpoints only, and write each to a temporary name first, so
    that a full disk never costs the last good one.

When it is wrong
    With a quota (EDQUOT) the disk itself may have room. `/dev/shm` is `shared-memory-full`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.deaths import Failed, FileSystem, Raised
from unstuck.rules.death.died import Death, death
from unstuck.rules.death.errors import passes, said, spot, user_line, whole
from unstuck.rules.death.sizes import size
from unstuck.rules.rule import Rule

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
SAVING = "torch/serialization.py"
SEMAPHORES = ("multiprocessing/synchronize.py", "multiprocessing/shared_memory.py", "multiprocessing/heap.py")


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    if end is None:
        return
    failed = no_room(end)
    if failed is None:
        return
    place = file_system(failed) or FileSystem(path=next(iter(failed.raised.files), ""))
    path, mount = place.path, place.mount or "the disk"
    shown: tuple[Failed, Raised] = next((pair for pair in end.errors if user_line(pair[1])), (failed, failed.raised))
    line, numbers = user_line(shown[1]), [raised.errno for raised in whole(failed.raised)]
    what = "the quota is used up" if errno.EDQUOT in numbers else f"{mount} is full"
    yield RULE.finding(
        severity="error",
        confidence=0.98 if any(number in NO_ROOM for number in numbers) else 0.93,
        title=f"{what}: {os.path.basename(path) or 'a file'} could not be written",
        evidence=(
            f"`{said(shown[1])}` at {spot(line)}",
            *([f"it was writing {path}"] if path else []),
            *([_measured(place)] if place.size else []),
            end.progress(),
        ),
        where=end.where(line, shown[0]),
        fix=Fix(
            f"Make room on {mount}, or write elsewhere. Keep only the last checkpoints, and "
            "write each to a temporary name first and rename it, so that the last good one survives."
        ),
        seen_by="exit",
    )


def no_room(end: Death) -> Failed | None:
    """The error that says so, with what was measured; not of shared memory."""
    for failed in (end.sample, end.died):
        if failed is None or any(passes(e, *SEMAPHORES) for e in whole(failed.raised)):
            continue
        place = file_system(failed)
        numbered = any(e.errno in NO_ROOM for e in whole(failed.raised))
        full = place is not None and place.full
        saved = full and any(passes(e, SAVING, function="save") for e in whole(failed.raised))
        if (numbered or saved) and not on_shm(failed):
            return failed
    return None


def file_system(failed: Failed) -> FileSystem | None:
    """Of those measured, the full one first."""
    found = failed.measured.file_systems
    return next((place for place in found if place.full), found[0] if found else None)


def on_shm(failed: Failed) -> bool:
    place = file_system(failed)
    on_mount = place is not None and place.mount == "/dev/shm"
    return on_mount or any(file.startswith("/dev/shm/") for file in failed.raised.files)


def _measured(place: FileSystem) -> str:
    kind = f" ({place.kind})" if place.kind else ""
    if place.no_inodes:
        return f"{place.mount}{kind} has {size(place.free)} of {size(place.size)} free but no inode left"
    return f"{place.mount}{kind} had {size(place.free)} of {size(place.size)} free"


RULE = Rule("disk-full", "death", decide)
