"""Where a process spends its time over some seconds: `py-spy record`, which only reads, many times a second."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass

from unstuck.model import Frame

from .source import is_user_code
from .stacks import find_py_spy

RATE = 50
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
        self._file = tempfile.NamedTemporaryFile(prefix="unstuck-", suffix=".raw")  # noqa: SIM115
        program = binary or find_py_spy()
        command = [program or "", "record", "--nonblocking", "--idle", "--threads", "--full-filenames"]
        command += ["--rate", str(RATE), "--duration", f"{max(1, round(seconds))}", "--format", "raw"]
        command += ["--output", self._file.name, "--pid", str(pid)]
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
        try:
            with open(self._file.name, encoding="utf-8", errors="replace") as file:
                return parse_raw(file.read(), self.pid)
        except OSError:
            return []

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except OSError:
                pass
            self._process.wait()
        self._process = None
        self._file.close()


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
