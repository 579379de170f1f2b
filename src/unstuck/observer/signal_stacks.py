"""The second source: ask the target's own faulthandler for its stacks by signal, and read what it writes.

Only where the recorder has put a handler there: sent to anything else, the signal would end the process. And only
while all its threads wait: a running interpreter that is read from within its own signal handler may crash.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from unstuck.model import Crash, Frame, Thread

from . import proc
from .gauge import number_of
from .stacks import PythonThread, Stacks, own_frames

SIGNAL = signal.SIGRTMIN + 5
TIME_LIMIT = 1.0  # seconds for an answer
_MAX_BYTES = 1 << 22  # of a dump that are read
_HEADER = re.compile(r"^(?:Current thread|Thread) 0x([0-9a-f]+)(?: \[(.*)\])? \(most recent call first\):")
_LONE_HEADER = "Stack (most recent call first):"
_FRAME = re.compile(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$')
_FATAL = {
    "Segmentation fault": "SIGSEGV",
    "Bus error": "SIGBUS",
    "Aborted": "SIGABRT",
    "Floating-point exception": "SIGFPE",
    "Floating point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
}
_CRASH = re.compile(rf"^Fatal Python error: ({'|'.join(_FATAL)})", re.MULTILINE)
_CURRENT = re.compile(r"^Current thread 0x([0-9a-f]+)", re.MULTILINE)
_STARTS_DUMP = ("Fatal Python error:", "Timeout (", "Fatal error")


class SignalStacks:
    """`folder` is where the recorders write: `<pid>-<start time in ticks>.stacks`."""

    def __init__(self, folder: Path | None, limit: float = TIME_LIMIT) -> None:
        self._folder = folder
        self._limit = limit

    def take(self, pids: Sequence[int]) -> Mapping[int, Stacks]:
        begun = {pid: self._send(pid) for pid in pids}
        deadline = time.monotonic() + self._limit
        answers = {pid: sent if isinstance(sent, str) else self._read(*sent, deadline) for pid, sent in begun.items()}
        return {
            pid: Stacks(missing=f"faulthandler: {answer}") if isinstance(answer, str) else answer
            for pid, answer in answers.items()
        }

    def _send(self, pid: int) -> tuple[Path, int] | str:
        """Send the signal; the file that will grow and its size so far, or why it was not sent."""
        stat = proc.stat(pid)
        if stat is None:
            return "the process is gone"
        # More than one, with numbers, after an exec.
        files = self._folder.glob(f"{pid}-{stat.started}.*stacks") if self._folder else ()
        file = max(files, key=lambda path: number_of(path.name), default=None)
        if file is None:
            return "the process is not recorded"
        if not catches(proc.maybe(f"/proc/{pid}/status"), SIGNAL):
            return "no handler in the process"
        if stat.state in "Tt":
            return "the process is stopped"
        if at_work(pid):
            return "it is at work, and to be read from within could crash it"
        try:
            size = file.stat().st_size
            os.kill(pid, SIGNAL)
        except OSError as error:
            return str(error.strerror)
        return file, size

    def _read(self, file: Path, before: int, deadline: float) -> Stacks | str:
        """Wait until the file has grown and is at rest."""
        size = before
        try:
            while time.monotonic() < deadline:
                time.sleep(0.02)
                now = file.stat().st_size
                if now == size > before:
                    break
                size = now
            if size == before:
                return f"no answer within {self._limit:g} s"
            with file.open("rb") as opened:
                opened.seek(max(before, size - _MAX_BYTES))
                text = opened.read(_MAX_BYTES).decode(errors="replace")
        except OSError as error:
            return str(error.strerror)
        threads = reversed(parse_faulthandler(text))
        newest_first = tuple(PythonThread(thread.tid, thread.frames, name=thread.name) for thread in threads)
        return Stacks(newest_first, "faulthandler") if newest_first else "no stack in its dump"


def at_work(pid: int) -> bool:
    """One of its threads runs, or would if it had a processor."""
    return any((stat := proc.stat(pid, tid)) is not None and stat.state == "R" for tid in proc.threads(pid))


def catches(status: str, number: int) -> bool:
    """The SigCgt mask in a `status` file has that signal."""
    mask = re.search(r"^SigCgt:\s+([0-9a-f]+)", status, re.MULTILINE)
    return mask is not None and bool(int(mask[1], 16) >> (number - 1) & 1)


def parse_faulthandler(text: str) -> tuple[Thread, ...]:
    """Threads of the last dump in the text, the main thread first.

    faulthandler knows no kernel thread number: `tid` is the Python ident (the pthread's address).
    """
    dumps = parse_dumps(text)
    return dumps[-1] if dumps else ()


def parse_crash(text: str) -> Crash | None:
    """The fatal signal in a file of dumps: the last one, for a process dies of it."""
    starts = list(_CRASH.finditer(text))
    if not starts:
        return None
    dump = text[starts[-1].start() :]
    threads = next(iter(parse_dumps(dump)), ())
    current = _CURRENT.search(dump)
    number = int(current[1], 16) if current else -1
    own = next((thread for thread in threads if thread.tid == number and thread.frames), None)
    return Crash(_FATAL[starts[-1][1]], own, threads)


def parse_dumps(text: str) -> tuple[tuple[Thread, ...], ...]:
    """All dumps of a file, oldest first. Within a dump a blank line parts the threads; between dumps there is none."""
    dumps: list[list[tuple[int, str, list[Frame]]]] = []
    frames: list[Frame] | None = None  # of the thread that is being read
    apart, fresh = True, True
    for line in text.splitlines():
        header = _header(line)
        if header is not None:
            known = dumps and any(thread[0] == header[0] for thread in dumps[-1])
            if fresh or not apart or known:
                dumps.append([])
            frames, fresh = [], False
            dumps[-1].append((*header, frames))
        elif line.startswith(_STARTS_DUMP):
            frames, fresh = None, True
        elif line.startswith("  File ") and frames is not None:
            frames.append(_frame(line))
        elif line and not line.startswith("  "):
            frames = None  # "Extension modules: ...", a C stack, or something else that is no Python frame
        apart = not line.strip()
    return tuple(
        tuple(
            Thread(tid=ident, name=name, python=True, frames=own_frames(tuple(frames)))
            for ident, name, frames in reversed(dump)
        )
        for dump in dumps
    )


def _header(line: str) -> tuple[int, str] | None:
    if line.startswith(_LONE_HEADER):
        return 0, ""
    match = _HEADER.match(line)
    return (int(match[1], 16), match[2] or "") if match else None


def _frame(line: str) -> Frame:
    match = _FRAME.match(line)
    if match is None:  # cut off in the middle
        return Frame(file=line.partition('"')[2].partition('"')[0], line=0, function="")
    return Frame(file=match[1], line=int(match[2]) if match[2].isdigit() else 0, function=match[3])
