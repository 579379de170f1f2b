"""Out of samples of stacks: the line of the user's code in which making a batch spends most of its time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from unstuck.model import Frame, HotLine

from .sampling import Sample
from .source import Source
from .torch_seams import DRAWS, FETCH, LOADER

ENOUGH = 15
"""Samples of waiting that are needed to speak of it."""
MOSTLY = 0.5
_FILE_LOCK = re.compile(r"\b(flock|lockf)\s*\(")
_LOCKING = ("/multiprocessing/synchronize.py", "/multiprocessing/managers.py", "/filelock/", "/portalocker/")


def hot_line(samples: Iterable[Sample], waiting: str) -> HotLine | None:
    """None where no line of the user's is on the way, or nothing was seen to make a batch."""
    return _most(samples, Source(), waiting, inside_fetch, only_locks=False)


def drawing_line(samples: Iterable[Sample]) -> HotLine | None:
    """Of the training process, beside workers: where drawing indices takes most of the time it waits for batches, the
    line of the sampler; its share is that of the waiting."""
    known = [(sample, inside(sample.frames, LOADER)) for sample in samples]
    waits = [(sample, frames) for sample, frames in known if frames is not None]
    drawn = [sample for sample, _ in waits if drawing(sample.frames) is not None]
    total, drawing_takes = sum(sample.count for sample, _ in waits), sum(sample.count for sample in drawn)
    if total < ENOUGH or drawing_takes < MOSTLY * total:
        return None
    line = _most(drawn, Source(), "", drawing, only_locks=False)
    return None if line is None else replace(line, share=line.share * drawing_takes / total)


def lock_line(samples: Iterable[Sample]) -> HotLine | None:
    """The line at which most time goes into waiting for a lock that processes share."""
    return _most(samples, Source(), "shared-lock", inside_fetch, only_locks=True)


def _most(
    samples: Iterable[Sample],
    source: Source,
    waiting: str,
    beneath: Callable[[tuple[Frame, ...]], tuple[Frame, ...] | None],
    *,
    only_locks: bool,
) -> HotLine | None:
    total, counts = 0, Counter[tuple[str, int]]()
    frames: dict[tuple[str, int], Frame] = {}
    for sample in samples:
        inner = beneath(sample.frames)
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
    """Frames below torch's fetcher, or below the drawing of indices for it, innermost first; None: no batch is made."""
    found = inside(frames, FETCH)
    return found if found is not None else drawing(frames)


def drawing(frames: tuple[Frame, ...]) -> tuple[Frame, ...] | None:
    """Frames below the drawing of indices: those of samplers."""
    return inside(frames, LOADER, DRAWS)


def inside(frames: tuple[Frame, ...], file: str, function: str = "") -> tuple[Frame, ...] | None:
    """Frames below the innermost one of that file, and function."""
    for number, frame in enumerate(frames):
        if frame.file.endswith(file) and (not function or frame.function.rpartition(".")[2] == function):
            return frames[:number]
    return None


def _locks(frame: Frame, beneath: tuple[Frame, ...]) -> bool:
    """The line takes a lock and is in the middle of it: nothing but the lock's own code runs beneath."""
    if any(part in each.file for each in beneath for part in _LOCKING):
        return True
    return not beneath and bool(frame.takes or _FILE_LOCK.search(frame.code))
