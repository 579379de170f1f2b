"""Where a process spends its time over some seconds: `py-spy record`, which only reads, many times a second."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from unstuck.model import Frame

from .source import is_user_code
from .stacks import find_py_spy

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
