"""Inside the script below `unstuck scan` or `unstuck tune`: runs it until its training loader is in use, hands that
loader over, and waits to be ended.

The parent ends all processes from the top: one that started this one and saw it end would go on as if it had trained.
Of several processes the first to get there takes over; the others wait with it. What is known goes as JSON lines into
a file in the folder given, which the parent follows.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import sys
import threading
import time

from ..recorder import guard
from .interrupts import Attentive, Patience
from .loaders_in_use import LONG_SECONDS, LoaderInUse, Watching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "UNSTUCK_TAKEOVER"  # the options, as JSON; then OVER, for what is started from there on
OVER = "over"
EVENTS, CLAIM, STOP = "events.jsonl", "claim", "stop"  # files in the folder
FAILED = 70  # exit status of a process that nobody ended


class Takeover:
    """Of this process. `options`: `function` to call ("package.module:name"), the `pid` of the parent, whether to go
    on `after_errors` of the script and to wait until the `step` is known; the rest is for the function."""

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        self.folder, self.options = folder, options
        self.patience = Patience()
        self._parent = options["pid"] if os.path.exists(f"/proc/{options['pid']}") else 0  # 0: not to be seen from here
        self._watching = Watching(self._asked, self._failed, self._fault)
        self._owner = 0
        """The process that used a loader: one that it forks ends without us."""

    def start(self) -> None:
        self._watching.start()

    def tell(self, event: str, **about: Any) -> None:
        line = (json.dumps({"event": event, **about}, default=str) + "\n").encode()
        path = os.path.join(self.folder, EVENTS)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)

    # --- until the training loader is in use ---------------------------------------------------------------

    def _asked(self, loader: LoaderInUse) -> None:
        if not self._owner:
            self._owner = os.getpid()
            self.tell("used")
            atexit.register(self._script_ended)  # registered late, it comes early
        if loader.trains():
            enough = not self.options.get("step") or loader.step_is_known()
        else:  # a script that does not train; only the process that was started itself is judged so
            long = time.monotonic() - loader.began > LONG_SECONDS and os.getppid() == self.options["pid"]
            enough = long and loader is self._watching.busiest()
        if enough:
            self._take_over(loader)

    def _failed(self, loader: LoaderInUse, _: BaseException) -> None:
        """A batch could not be had: that is no reason not to go through the others."""
        if self.options.get("after_errors") and not self._told_to_stop():
            self._take_over(loader)

    def _script_ended(self) -> None:
        """It ended before enough was seen."""
        loader = self._watching.busiest()
        failed = hasattr(sys, "last_value") and not self.options.get("after_errors")
        if loader is not None and not failed and os.getpid() == self._owner and not self._told_to_stop():
            self._take_over(loader)

    def _fault(self, fault: Exception) -> None:
        """Of ours, while the script runs."""
        self._watching.stop()
        self.tell("fault", what=f"{type(fault).__name__}: {fault}")

    # --- from there on -------------------------------------------------------------------------------------

    def _take_over(self, loader: LoaderInUse) -> None:
        """Does not return."""
        said: dict[str, Any] = {}
        try:
            off = dict(guard.OFF)
            self._watching.stop()
            os.environ[VARIABLE] = OVER
            if self._claims():
                _silence()
                threading.Thread(target=self._listen, daemon=True).start()
                if threading.current_thread() is threading.main_thread():
                    signal.signal(signal.SIGINT, signal.default_int_handler)  # the script's own handler is over too
                loader.dismiss_workers()
                self._tell_found(loader, off)
                with Attentive(self.patience):
                    said = {"event": "done", "result": self._function()(self, loader)}
        except BaseException as fault:
            import traceback

            said = {"event": "fault", "what": f"{type(fault).__name__}: {fault}", "traceback": traceback.format_exc()}
        finally:
            self._wait_for_end(said)

    def _claims(self) -> bool:
        try:
            os.close(os.open(os.path.join(self.folder, CLAIM), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError:
            return False
        return True

    def _tell_found(self, loader: LoaderInUse, off: dict[str, str]) -> None:
        self.tell(
            "found",
            built_at=loader.built_at,
            built_by=type(loader.loader).__name__,
            built=self._watching.built_by_line(loader.built_at),
            dataset=type(loader.loader.dataset).__name__,
            trains=loader.trained,
            off={name: why for name, why in off.items() if why != "not wanted here"},
        )

    def _function(self) -> Any:
        module, _, name = self.options["function"].partition(":")
        root = __package__.rpartition(".")[0]
        return getattr(importlib.import_module(f"{root}.{module}"), name)

    def _listen(self) -> None:
        """The parent may be told to stop, or be gone, where this process hears nothing of it."""
        while True:
            if not self._is_wanted():
                os.kill(os.getpid(), signal.SIGKILL)
            self.patience.stopped = self.patience.stopped or self._told_to_stop()
            time.sleep(0.1)

    def _told_to_stop(self) -> bool:
        return os.path.exists(os.path.join(self.folder, STOP))

    def _is_wanted(self) -> bool:
        """The folder is there, and so is the parent."""
        return os.path.isdir(self.folder) and (not self._parent or os.path.exists(f"/proc/{self._parent}"))

    def _wait_for_end(self, said: dict[str, Any]) -> None:
        """Nothing of the script runs any more, no checkpoint is half written. The result is told when all is put away:
        then the parent ends this process after those above it."""
        from multiprocessing import active_children, util

        try:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for child in active_children():
                child.terminate()
            util._exit_function()  # type: ignore[attr-defined]  # else its semaphores would be reported as leaked
        finally:
            try:
                if said:
                    self.tell(**said)
                while self._is_wanted():
                    time.sleep(0.05)
            finally:
                os._exit(FAILED)


def _silence() -> None:
    """What a dataset prints while it is read is nobody's business."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def start(folder: str) -> None:
    """Of sitecustomize. Below what was taken over only our modules must be there."""
    if os.environ[VARIABLE] != OVER:
        Takeover(folder, json.loads(os.environ[VARIABLE])).start()
