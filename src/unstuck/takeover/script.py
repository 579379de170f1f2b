"""Runs a script below `unstuck scan` or `unstuck tune`, follows what is done inside it, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from unstuck.errors import OwnFault, UnstuckError, UsageError
from unstuck.supervise import child, flight_folder, stop
from unstuck.takeover.inside import CLAIM, EVENTS, STOP, VARIABLE

TICK_SECONDS = 0.05
SIGNAL_AFTER_SECONDS = 1.0  # of Ctrl-C, after which a script that was not taken over yet is sent it as well
GRACE_SECONDS = 15.0  # to tell what was found by then
SILENT_SECONDS = 120.0  # without a word from inside: a batch takes that long, or never comes
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Event = dict[str, Any]


class Script:
    """`found`: what is known of the loader; `result`: the latest; `status`: the script's own, where it ended itself."""

    def __init__(
        self, goal: str, command: Sequence[str], options: dict[str, Any], show: Callable[[Event], object]
    ) -> None:
        """`goal`: the subcommand, for messages; `options`: see `inside.Takeover`."""
        self._goal, self.command, self._options, self._show = goal, list(command), options, show
        self.found: Event = {}
        self.result: Any = None
        self.fault: Event = {}
        self.status: int | None = None
        self.interrupts = 0
        self._used = self._done = False
        self._ended_by: int | None = None
        self._read = 0

    def run(self, *, silent: bool = False) -> None:
        """To its end, or to the result. `silent`: what the script prints is not wanted."""
        folder, why = flight_folder.make_folder()
        if folder is None:
            raise UsageError(
                f"cannot {self._goal}: no temporary folder",
                cause=why,
                next_command=f"TMPDIR=/some/local/folder unstuck {self._goal} train.py",
            )
        self._folder = folder
        heard = [number for number in ENDS if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, self._signalled) for number in heard}
        try:
            options = json.dumps({**self._options, "pid": os.getpid()})
            self._process = _start(self.command, {**child.environment(folder), VARIABLE: options}, silent)
            try:
                self._follow()
            finally:
                self._end_all()
                self._listen()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            flight_folder.remove_folder(folder)
        if self._ended_by is not None:
            child.die_like(self._ended_by)

    def _signalled(self, number: int, _: object) -> None:
        self.interrupts += 1
        if number != signal.SIGINT:
            self._ended_by = number

    # --- while it runs -----------------------------------------------------------------------------------

    def _follow(self) -> None:
        stopped_at, signalled, heard_at = 0.0, False, time.monotonic()
        patience = max(SILENT_SECONDS, float(self._options.get("seconds", 0)))
        while self._process.poll() is None and not self._done and self._ended_by is None:
            now = time.monotonic()
            if self._listen():
                heard_at = now
            if self.interrupts and not stopped_at:
                stopped_at = now
                open(os.path.join(self._folder, STOP), "w").close()
            if self.interrupts > 1 or (stopped_at and now - stopped_at > GRACE_SECONDS):
                break
            if stopped_at and not signalled and now - stopped_at > SIGNAL_AFTER_SECONDS and not self._claimed():
                signalled = True
                os.kill(self._process.pid, signal.SIGINT)  # not reaped yet: the pid is still its own
            if self.found and now - heard_at > patience:
                break
            time.sleep(TICK_SECONDS)
        self.status = self._process.returncode

    def _claimed(self) -> bool:
        return os.path.exists(os.path.join(self._folder, CLAIM))

    def _listen(self) -> bool:
        """Read what is new in the file of events."""
        try:
            with open(os.path.join(self._folder, EVENTS), "rb") as file:
                file.seek(self._read)
                new = file.read()
        except OSError:
            return False
        lines = new[: new.rfind(b"\n") + 1]
        self._read += len(lines)
        for line in lines.splitlines():
            self._heard(json.loads(line))
        return bool(lines)

    def _heard(self, event: Event) -> None:
        kind = event["event"]
        self._used = True
        if kind == "found":
            self.found = event
        elif kind == "fault":
            self.fault = event
        self.result = event.get("result", self.result)
        self._done = self._done or kind in ("done", "fault")
        self._show(event)

    def _end_all(self) -> None:
        """From the top down, and at once where a result is there: whoever started the process that was taken over must
        not see it end, and go on as if it had trained."""
        members = stop.tree_of(self._process.pid) if self._process.poll() is None else {}
        deadline = time.monotonic() + (0.0 if self._done else 0.2)
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(TICK_SECONDS)
        if self._process.poll() is None:
            members = {**stop.tree_of(self._process.pid), **members}
        stop.kill(members)
        while self._process.poll() is None:
            time.sleep(TICK_SECONDS)

    # --- where there is no result ------------------------------------------------------------------------

    def nothing(self, cause: str = "") -> UnstuckError:
        """Why, and what to type; `cause`: what is known of a loader that was found."""
        again = f"unstuck run {' '.join(self.command[1:])}"
        if self.fault:
            return OwnFault(
                f"cannot {self._goal} this loader: {self.fault['what']}",
                cause="an error in unstuck, or something in this dataset or its sampler that it does not know; please "
                "report it, with what `unstuck env` prints",
                next_command="unstuck env",
            )
        if self.found:
            cause = cause or (f"the script died ({self._how()})" if self.status else "its batches never come")
            what = f"cannot {self._goal} the loader of {self.found['dataset']}"
            return UsageError(what, cause=cause, next_command=again)
        if self.status:
            when = "too early after its first batch" if self._used else "before it used a DataLoader"
            what = f"the script died {when} ({self._how()})"
            return UsageError(what, cause="an error of its own, printed above", next_command=again)
        return UsageError(
            "the script finished without iterating a DataLoader",
            cause="it uses no torch.utils.data.DataLoader with these arguments, or only in a process that unstuck "
            "cannot reach (python -E, -I or -S, a container)",
            next_command=again,
        )

    def _how(self) -> str:
        code = self.status or 0
        return f"exit code {code}" if code > 0 else f"signal {-code}"


def _start(command: list[str], env: dict[str, str], silent: bool) -> child.Child:
    mask = {number for number in signal.pthread_sigmask(signal.SIG_BLOCK, ()) if isinstance(number, signal.Signals)}
    if not silent:
        return child.start(command, env, old_mask=mask, detach=False)
    out, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        return child.start(command, env, old_mask=mask, detach=False)
    finally:
        os.dup2(out, 1)
        os.close(out)
        os.close(null)
