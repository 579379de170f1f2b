"""Starts a script below `unstuck scan`, waits until its data set is scanned, and leaves nothing of it behind."""

from __future__ import annotations

import json
import os
import signal
import time

from unstuck.recorder.layout import SCAN_CLAIMED, SCAN_DONE, SCAN_STOP
from unstuck.supervise import child, from_the_top

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

TICK = 0.05
SIGNAL_AFTER = 1.0
"""Seconds after which a script that does not scan yet is sent the Ctrl-C as well."""
GRACE = 15.0
"""Seconds to tell what was seen, after Ctrl-C."""


class Scanning:
    """One `unstuck scan`: `status` is the script's exit status, where it ended by itself."""

    def __init__(self, command: Sequence[str], folder: str, options: dict[str, Any]) -> None:
        self.command, self.folder, self.options = list(command), folder, options
        self.status: int | None = None
        self.interrupts = 0
        self.ended_by: int | None = None

    def run(self) -> None:
        """Until all is told, or the script has ended."""
        ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        heard = [number for number in ends if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, self._signalled) for number in heard}
        try:
            options = json.dumps({**self.options, "pid": os.getpid()})
            env = {**child.environment(self.folder), "UNSTUCK_SCAN": options}
            self.process = _start_silent(self.command, env)
            try:
                self._follow()
            finally:
                self._end_all()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @property
    def found(self) -> bool:
        """A process came so far as to scan."""
        return self._claimed

    def how(self) -> str:
        code = self.status or 0
        return f"status {code}" if code >= 0 else f"signal {-code}"

    def die_if_told_to(self) -> None:
        if self.ended_by is not None:
            child.die_like(self.ended_by)

    def _signalled(self, number: int, _: object) -> None:
        self.interrupts += 1
        if number != signal.SIGINT:
            self.ended_by = number

    def _follow(self) -> None:
        told, sent = 0.0, False
        self._claimed = False
        while self.process.poll() is None and not self._has(SCAN_DONE) and self.ended_by is None:
            now = time.monotonic()
            if self.interrupts and not told:
                told = now
                open(os.path.join(self.folder, SCAN_STOP), "w").close()
            if self.interrupts > 1 or (told and now - told > GRACE):
                break
            if told and not sent and now - told > SIGNAL_AFTER and not self._has(SCAN_CLAIMED):
                sent = True
                _send(self.process.pid, signal.SIGINT)
            time.sleep(TICK)
        self._claimed = self._has(SCAN_CLAIMED)
        self.status = self.process.returncode

    def _has(self, name: str) -> bool:
        return os.path.exists(os.path.join(self.folder, name))

    def _end_all(self) -> None:
        """From the top: what started the process that scanned must not go on as if that had trained."""
        from_the_top.end(self.process)


def _start_silent(command: list[str], env: dict[str, str]) -> child.Child:
    """What the script prints is not wanted: standard output is for what is found."""
    mask = {each for each in signal.pthread_sigmask(signal.SIG_BLOCK, ()) if isinstance(each, signal.Signals)}
    out, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        return child.start(command, env, old_mask=mask, detach=False)
    finally:
        os.dup2(out, 1)
        os.close(out)
        os.close(null)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass
