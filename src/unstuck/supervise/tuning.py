"""Starts a script below `unstuck tune`, follows what is measured inside it, and leaves nothing of it behind."""

from __future__ import annotations

import json
import os
import signal
import time

from unstuck.errors import OwnFault, UnstuckError, UsageError
from unstuck.supervise import child, flight_folder, from_the_top
from unstuck.tuning.outcome import Tuned, from_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

SITE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tuning", "site")
TICK = 0.05
SIGNAL_AFTER = 0.5
"""Seconds after which the script, if it says nothing to Ctrl-C, is sent it."""
GRACE = 10.0
"""Seconds to end after Ctrl-C, or beyond the time that was given."""
STUCK = 120.0
"""Seconds without a word while candidates are measured: a batch takes that long, or never comes."""


class Tuning:
    """One `unstuck tune`. `found` is what is known of the loader, `tuned` the latest result."""

    def __init__(self, command: Sequence[str], seconds: float, show: Callable[[dict[str, Any]], object]) -> None:
        self.command, self.seconds, self._show = list(command), seconds, show
        self.found: dict[str, Any] = {}
        self.tuned: Tuned | None = None
        self.used = self.done = False
        self.fault: dict[str, Any] = {}
        self.interrupts = 0
        self.ended_by: int | None = None
        self._read = 0

    def run(self) -> Tuned:
        """The result; a UsageError if the script never came to a loader, KeyboardInterrupt if it was told to end."""
        folder, why = flight_folder.make_folder()
        if folder is None:
            raise UsageError(
                "cannot tune: no temporary folder", cause=why, next_command="set TMPDIR to a local folder with room"
            )
        self.folder = folder
        heard = [s for s in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(s) != signal.SIG_IGN]
        before = {number: signal.signal(number, self._signalled) for number in heard}
        try:
            self.process = child.start(self.command, self._environment(), old_mask=_mask(), detach=False)
            try:
                self._follow()
            finally:
                self._end_all()
                self._listen()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            flight_folder.remove_folder(folder)
        return self._result()

    def _environment(self) -> dict[str, str]:
        env = {**os.environ, "UNSTUCK_TUNE_DIR": self.folder, "UNSTUCK_TUNE_SECONDS": repr(self.seconds)}
        env["PYTHONPATH"] = SITE + (os.pathsep + env["PYTHONPATH"] if env.get("PYTHONPATH") else "")
        return env

    def _signalled(self, number: int, _: object) -> None:
        self.interrupts += 1
        if number == signal.SIGTERM:
            self.interrupts += 2
            self.ended_by = number

    # --- while it runs -----------------------------------------------------------------------------------

    def _follow(self) -> None:
        told, heard = 0.0, time.monotonic()
        while self.process.poll() is None and not self.done:
            if self._listen():
                heard = time.monotonic()
            now = time.monotonic()
            if self.interrupts and not told:
                told = now
                open(os.path.join(self.folder, "stop"), "w").close()
            if self.interrupts >= 2 or (told and now - told > GRACE):
                return
            if told and now - told > SIGNAL_AFTER:
                self._send_once()
            if self.found and now - heard > max(STUCK, self.seconds):
                return
            time.sleep(TICK)

    def _send_once(self) -> None:
        """A signal that was meant for us alone is meant for the script too."""
        if not self.ended_by:
            self.ended_by = signal.SIGINT
            try:
                os.kill(self.process.pid, signal.SIGINT)
            except (ProcessLookupError, PermissionError):
                pass

    def _listen(self) -> bool:
        """Read what is new in the file of events."""
        try:
            with open(os.path.join(self.folder, "events.jsonl"), "rb") as file:
                file.seek(self._read)
                new = file.read()
        except OSError:
            return False
        lines = new[: new.rfind(b"\n") + 1]
        self._read += len(lines)
        for line in lines.splitlines():
            self._heard(json.loads(line))
        return bool(lines)

    def _heard(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        self.used = True
        if kind == "found":
            self.found = event
        elif kind == "fault":
            self.fault = event
        if "tuned" in event:
            self.tuned = from_plain(event["tuned"])
        self.done = self.done or kind == "done" or bool(event.get("last"))
        self._show(event)

    # --- the end -----------------------------------------------------------------------------------------

    def _end_all(self) -> None:
        """From the top down, and at once where a result is there: whoever started the process that was measured must
        not see it end, and go on as if it had trained."""
        left = from_the_top.tree(self.process)
        deadline = time.monotonic() + (0.0 if self.done else 0.2)
        while self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(TICK)
        from_the_top.end(self.process, left)

    def _result(self) -> Tuned:
        if self.ended_by == signal.SIGTERM:
            child.die_like(signal.SIGTERM)
        if self.fault:
            raise OwnFault(
                f"the loader could not be measured: {self.fault['what']}",
                cause="a fault of unstuck, or something in this script that it does not know",
                next_command="unstuck env    (and report it with what this prints)",
            )
        if self.tuned is not None and any(row.samples_per_second for row in self.tuned.table):
            return self.tuned
        if self.interrupts:
            raise KeyboardInterrupt
        raise self._nothing()

    def _nothing(self) -> UnstuckError:
        """Why there is no result, and what to type."""
        code, shown = self.process.returncode, " ".join(self.command[1:])
        if self.tuned is not None or self.found:
            failed = [row.error for row in self.tuned.table if row.error] if self.tuned else []
            return UsageError(
                "no setting of the loader could be measured",
                cause=failed[0] if failed else "its batches take too long, or never come",
                next_command=f"unstuck run {shown}",
            )
        after = (
            "after its loader was first used, too early to measure it" if self.used else "before any loader was used"
        )
        if code:
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
            return UsageError(
                f"the script died {after} ({how})",
                cause="an error of its own, printed above",
                next_command=f"unstuck run {shown}",
            )
        return UsageError(
            f"the script ended {after}",
            cause="it uses no torch.utils.data.DataLoader with these arguments, or in a process that cannot be reached "
            "(python -E, -I or -S, a container)",
            next_command=f"unstuck run {shown}",
        )


def _mask() -> set[signal.Signals]:
    return {
        signal.Signals(number)
        for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        if number in set(signal.Signals)
    }
