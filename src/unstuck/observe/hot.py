"""Out of samples of stacks: the line of the user's code in which making a batch spends most of its time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from unstuck.model import Frame, HotLine

from .sampling import Sample
from .source import Source
from .torch_seams import FETCH

_FILE_LOCK = re.compile(r"\b(flock|lockf)\s*\(")
_LOCKING = ("/multiprocessing/synchronize.py", "/multiprocessing/managers.py", "/filelock/", "/portalocker/")


def hot_line(samples: Iterable[Sample], waiting: str) -> HotLine | None:
    """None where no line of the user's is on the way, or nothing was seen to make a batch."""
    return _most(samples, Source(), waiting, only_locks=False)


def lock_line(samples: Iterable[Sample]) -> HotLine | None:
    """The line at which most time goes into waiting for a lock that processes share."""
    return _most(samples, Source(), "shared-lock", only_locks=True)


def _most(samples: Iterable[Sample], source: Source, waiting: str, *, only_locks: bool) -> HotLine | None:
    total, counts = 0, Counter[tuple[str, int]]()
    frames: dict[tuple[str, int], Frame] = {}
    for sample in samples:
        inner = inside_fetch(sample.frames)
        if inner is None:
            continue
        total += sample.count
        own = next((n for n, frame in enumerate(inner) if frame.user), None)
        if own is None:
            continue
        frame = source.annotate((inner[own],))[0]
        if only_locks and not _locks(frame, inner[:own]):
            continue
        counts[frame.file, frame.line] += sample.count
        frames[frame.file, frame.line] = frame
    if not counts:
        return None
    place, count = counts.most_common(1)[0]
    frame = frames[place]
    return HotLine(
        file=frame.file,
        line=frame.line,
        function=frame.function,
        code=frame.code,
        share=count / total,
        samples=total,
        waiting=waiting,
        takes=frame.takes,
    )


def inside_fetch(frames: tuple[Frame, ...]) -> tuple[Frame, ...] | None:
    """Frames below torch's fetcher, innermost first; None: no batch was being made."""
    for number, frame in enumerate(frames):
        if frame.file.endswith(FETCH):
            return frames[:number]
    return None


def _locks(frame: Frame, beneath: tuple[Frame, ...]) -> bool:
    """The line takes a lock and is in the middle of it: nothing but the lock's own code runs beneath."""
    if any(part in each.file for each in beneath for part in _LOCKING):
        return True
    return not beneath and bool(frame.takes or _FILE_LOCK.search(frame.code))
