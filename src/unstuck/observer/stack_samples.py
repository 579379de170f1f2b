"""Where a process spends its time over some seconds: `py-spy record`, which only reads, many times a second."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from unstuck.model import Frame, HotLine

from .source import Source, is_user_code
from .stacks import find_py_spy
from .torch_files import DRAWS, FETCH, LOADER

RATE = 50
LONGEST = 5
"""Seconds of one sampling, however long is looked."""
PR_SET_PDEATHSIG = 1
_FRAME = re.compile(r"(.*) \((.*):(\d+)\)$")


@dataclass(frozen=True)
class Sample:
    """A stack of the main thread, and how often it was found."""

    frames: tuple[Frame, ...]
    """Innermost first."""
    count: int


class Sampler:
    """Samples one process until stopped. Where py-spy cannot, there are simply no samples."""

    def __init__(self, pid: int, seconds: float, binary: str | None = None) -> None:
        self.pid = pid
        self._file = os.fdopen(os.memfd_create("py-spy"), "rb")  # in memory: nothing is left behind
        program = binary or find_py_spy()
        command = [program or "", "record", "--nonblocking", "--idle", "--threads", "--full-filenames"]
        self.seconds = min(max(1, round(seconds)), LONGEST)
        command += ["--rate", str(RATE), "--duration", str(self.seconds), "--format", "raw"]
        command += ["--output", f"/proc/{os.getpid()}/fd/{self._file.fileno()}", "--pid", str(pid)]
        self._process: subprocess.Popen[bytes] | None = None
        if program is None:
            return
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=end_with_parent(),
            )
        except OSError:
            pass

    def samples(self, patience: float) -> list[Sample]:
        """Of the main thread, when it is done; it is ended where it does not come to an end."""
        if self._process is None:
            return []
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.end()
            return []
        self._file.seek(0)
        return parse_raw(self._file.read().decode(errors="replace"), self.pid)

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except OSError:
                pass
            self._process.wait()
        self._process = None
        self._file.close()


def end_with_parent() -> Callable[[], object]:
    """What a child does first, so that it ends when we do, whatever ends us."""
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def parse_raw(text: str, pid: int) -> list[Sample]:
    """Lines `thread (TID): name;outer (file:line);inner (file:line) COUNT`, of the main thread only."""
    found = []
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        head, *names = stack.split(";")
        if not count.isdigit() or not _is_main(head, pid):
            continue
        frames = tuple(frame for name in reversed(names) if (frame := _frame(name)) is not None)
        if frames:
            found.append(Sample(frames, int(count)))
    return found


def _is_main(head: str, pid: int) -> bool:
    return head.startswith(f"thread ({pid})") or head.endswith("MainThread")


def _frame(text: str) -> Frame | None:
    match = _FRAME.match(text)
    if match is None:
        return None
    function, file, line = match.groups()
    return Frame(file, int(line), function, user=is_user_code(file))


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
