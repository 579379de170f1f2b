"""Where a process spends its time over some seconds: `py-spy record`, and the hot line of the user's in its samples."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from unstuck.model import Frame, HotLine, SeenStack

from .source import Source, is_user_code
from .stacks import find_py_spy
from .torch_files import DRAWS, FETCH, LOADER

RATE_HZ = 50
MAX_SECONDS = 5  # of one sampling, however long the look takes
MIN_WAIT_SAMPLES = 15  # samples of waiting that are needed to speak of it
MIN_DRAWING_SHARE = 0.5  # of the waiting
PR_SET_PDEATHSIG = 1
_FRAME = re.compile(r"(.*) \((.*):(\d+)\)$")
_FILE_LOCK = re.compile(r"\b(flock|lockf)\s*\(")
_LOCKING = ("/multiprocessing/synchronize.py", "/multiprocessing/managers.py", "/filelock/", "/portalocker/")
MAX_USER_FRAMES, MAX_STACKS = 8, 100  # that are kept of a stack, and of a process
_MODULE = "/torch/nn/modules/module.py"
_WAITING = (
    "/threading.py", "/queue.py", "/selectors.py", "/multiprocessing/queues.py", "/multiprocessing/connection.py",
    "/multiprocessing/pool.py", "/multiprocessing/synchronize.py", "/concurrent/futures/_base.py", "/subprocess.py",
    "/multiprocessing/popen_fork.py", "/multiprocessing/popen_forkserver.py", "/multiprocessing/process.py",
)  # fmt: skip
Frames = tuple[Frame, ...]


@dataclass(frozen=True)
class Sample:
    """A stack of a thread, innermost first, and how often it was seen."""

    frames: Frames
    count: int
    main: bool = True
    thread: str = ""


class Sampler:
    """Samples one process until stopped; it only reads. Where py-spy cannot, there are simply no samples."""

    def __init__(self, pid: int, seconds: float) -> None:
        self.pid = pid
        self.seconds = min(max(1, round(seconds)), MAX_SECONDS)
        self._file = os.fdopen(os.memfd_create("py-spy"), "rb")  # in memory: nothing is left behind
        self._process: subprocess.Popen[bytes] | None = None
        program = find_py_spy()
        if program is None:
            return
        command = [program, "record", "--nonblocking", "--idle", "--threads", "--full-filenames", "--format", "raw"]
        command += ["--rate", str(RATE_HZ), "--duration", str(self.seconds), "--pid", str(pid)]
        command += ["--output", f"/proc/{os.getpid()}/fd/{self._file.fileno()}"]
        nowhere = subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(
                command,
                stdin=nowhere,
                stdout=nowhere,
                stderr=nowhere,
                start_new_session=True,
                preexec_fn=_end_with_parent(),
            )
        except OSError:
            pass

    def samples(self, patience: float) -> list[Sample]:
        """Of all threads, when it is done; none where py-spy has to be ended."""
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


def _end_with_parent() -> Callable[[], object]:
    """What a child does first, so that it ends when we do, whatever ends us."""
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def parse_raw(text: str, pid: int) -> list[Sample]:
    """Lines `thread (TID): name;outer (file:line);inner (file:line) COUNT`."""
    samples = []
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        head, *names = stack.split(";")
        is_main = head.startswith(f"thread ({pid})") or head.endswith("MainThread")
        matches = [match for name in reversed(names) if (match := _FRAME.match(name)) is not None]
        if count.isdigit() and matches:
            frames = (Frame(match[2], int(match[3]), match[1], user=is_user_code(match[2])) for match in matches)
            samples.append(Sample(tuple(frames), int(count), is_main, head))
    return samples


def seen_stacks(pid: int, samples: Iterable[Sample], trains: bool) -> list[SeenStack]:
    """The user's part of each stack, and what is beneath it: a wait, a module of torch."""
    source, counts = Source(), Counter[SeenStack]()
    for sample in samples:
        own = [frame for frame in sample.frames if frame.user][:MAX_USER_FRAMES]
        model = any(frame.file.endswith(_MODULE) for frame in sample.frames)
        sites = tuple((frame.file, frame.line, frame.function) for frame in own)
        code = source.annotate((own[0],))[0].code if own else ""
        counts[SeenStack(pid, trains and sample.main, sites, code, waits_for_others(sample), model)] += sample.count
    return [replace(stack, count=count) for stack, count in counts.most_common(MAX_STACKS)]


def waits_for_others(sample: Sample) -> bool:
    return not sample.frames[0].user and sample.frames[0].file.endswith(_WAITING)


def hot_line(samples: Iterable[Sample], waiting: str) -> HotLine | None:
    """None where no line of the user's is on the way, or no sample was making a batch."""
    return _most(samples, inside_fetch, waiting)


def lock_line(samples: Iterable[Sample]) -> HotLine | None:
    """The line at which most time goes into waiting for a lock that processes share."""
    return _most(samples, inside_fetch, "shared-lock", only_locks=True)


def drawing_line(samples: Iterable[Sample]) -> HotLine | None:
    """Of a training process that has workers: where drawing indices takes most of the time it waits for batches, the
    line of the sampler; its share is that of the waiting."""
    waits = [sample for sample in samples if inside(sample.frames, LOADER) is not None]
    drawn = [sample for sample in waits if drawing(sample.frames) is not None]
    total, drawing_takes = (sum(sample.count for sample in some) for some in (waits, drawn))
    if total < MIN_WAIT_SAMPLES or drawing_takes < MIN_DRAWING_SHARE * total:
        return None
    line = _most(drawn, drawing)
    return None if line is None else replace(line, share=line.share * drawing_takes / total)


def _most(
    samples: Iterable[Sample],
    beneath: Callable[[Frames], Frames | None],
    waiting: str = "",
    *,
    only_locks: bool = False,
) -> HotLine | None:
    source, total, counts = Source(), 0, Counter[tuple[str, int]]()
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
        if not only_locks or _locks(frame, inner[:own]):
            counts[frame.file, frame.line] += sample.count
            frames[frame.file, frame.line] = frame
    if not counts:
        return None
    line, count = counts.most_common(1)[0]
    hot = frames[line]
    return HotLine(hot.file, hot.line, hot.function, hot.code, count / total, total, waiting, hot.takes)


def inside_fetch(frames: Frames) -> Frames | None:
    """Frames below torch's fetcher, or below the drawing of indices for it, innermost first; None: no batch is made."""
    inner = inside(frames, FETCH)
    return inner if inner is not None else drawing(frames)


def drawing(frames: Frames) -> Frames | None:
    """Frames below the drawing of indices: those of samplers."""
    return inside(frames, LOADER, DRAWS)


def inside(frames: Frames, file: str, function: str = "") -> Frames | None:
    """Frames below the innermost one of that file, and function."""
    for number, frame in enumerate(frames):
        if frame.file.endswith(file) and (not function or frame.function.rpartition(".")[2] == function):
            return frames[:number]
    return None


def _locks(frame: Frame, beneath: Frames) -> bool:
    """The line takes a lock and is in the middle of it: nothing but the lock's own code runs beneath."""
    if any(part in lower.file for lower in beneath for part in _LOCKING):
        return True
    return not beneath and bool(frame.takes or _FILE_LOCK.search(frame.code))
