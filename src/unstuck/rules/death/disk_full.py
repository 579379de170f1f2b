"""disk-full: there was no room for what the run wrote.

What it sees
    ENOSPC or EDQUOT in the exception the run died of; or a failure inside `torch.save`, whose own error has no
    number, while the file system it wrote to was measured to be full.

Why training stops
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
from typing import Any

from unstuck.model import Case, Finding, Fix
from unstuck.rules.death.died import Death, death
from unstuck.rules.death.errors import Error, spot
from unstuck.rules.death.sizes import size
from unstuck.rules.rule import Rule

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
SAVING = "torch/serialization.py"
SEMAPHORES = ("multiprocessing/synchronize.py", "multiprocessing/shared_memory.py", "multiprocessing/heap.py")


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    if end is None:
        return
    error = no_room(end)
    if error is None:
        return
    place = file_system(error)
    path = str(place.get("path") or next(iter(error.files), ""))
    source = next((e for e in end.errors if e.user is not None), error)
    quota = any(e.errno == errno.EDQUOT for e in error.whole)
    what = "the quota is used up" if quota else f"{place.get('mount') or 'the disk'} is full"
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error",
        confidence=0.98 if any(e.errno in NO_ROOM for e in error.whole) else 0.93,
        title=f"{what}: {os.path.basename(path) or 'a file'} could not be written",
        evidence=(
            f"`{source.said}` at {spot(source.user)}",
            *([f"it was writing {path}"] if path else []),
            *([_measured(place)] if place.get("size") else []),
            end.progress(),
        ),
        where=end.where(source.user, source),
        fix=Fix(
            f"Make room on {place.get('mount') or 'the disk'}, or write elsewhere. Keep only the last checkpoints, and "
            "write each to a temporary name first and rename it, so that the last good one survives."
        ),
        seen_by="exit",
    )


def no_room(end: Death) -> Error | None:
    """The error that says so, with what was measured; not of shared memory."""
    for error in (end.sample, end.error):
        if error is None or any(e.passes(*SEMAPHORES) for e in error.whole):
            continue
        place = file_system(error)
        numbered = any(e.errno in NO_ROOM for e in error.whole)
        saved = place.get("full") and any(e.passes(SAVING, function="save") for e in error.whole)
        if (numbered or saved) and not on_shm(error):
            return error
    return None


def file_system(error: Error) -> dict[str, Any]:
    """Of those measured, the full one first."""
    found = [p for p in error.measured.get("file_systems") or () if isinstance(p, dict)]
    return next((p for p in found if p.get("full")), found[0] if found else {})


def on_shm(error: Error) -> bool:
    return file_system(error).get("mount") == "/dev/shm" or any(f.startswith("/dev/shm/") for f in error.files)


def _measured(place: dict[str, Any]) -> str:
    kind = f" ({place['kind']})" if place.get("kind") else ""
    if place.get("no_inodes"):
        return f"{place['mount']}{kind} has {size(place['free'])} of {size(place['size'])} free but no inode left"
    return f"{place['mount']}{kind} had {size(place['free'])} of {size(place['size'])} free"


RULE = Rule("disk-full", "death", decide)
