"""`unstuck.watch()`: the same recorder and supervisor, from inside a script or notebook that is already running."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from types import TracebackType

from unstuck.platforms import can_watch, what_works

_current: Watcher | None = None


class Watcher:
    """A watch in progress. Ends by itself with the process; `stop()` or a `with` block end it earlier."""

    def __init__(self, helper: subprocess.Popen[bytes] | None, folder: str | None, note: str = "") -> None:
        self._helper = helper
        self._folder = folder
        self.note = note
        """Why nothing is watched; empty if something is."""

    @property
    def active(self) -> bool:
        return self._helper is not None and self._helper.poll() is None

    def stop(self) -> None:
        """Take the hooks out and end the helper. Harmless if called twice."""
        global _current
        helper, self._helper = self._helper, None
        if _current is self:
            _current = None
        if helper is None:
            return
        from unstuck.recorder import start

        start.stop()
        if helper.stdin is not None:
            helper.stdin.close()  # its sign to finish
        try:
            helper.wait(10)
        except subprocess.TimeoutExpired:
            helper.kill()
            helper.wait()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def watch(*, stall_after: float | None = None, report: str | os.PathLike[str] | None = None) -> Watcher:
    """Watch this process and its workers from here on; findings appear on standard error.

    Call it before the loaders are built. Under `unstuck run` it does nothing: everything is watched already. It never
    raises for a reason of its own: where nothing can be watched, the Watcher has a `note` that says why.
    """
    global _current
    if _current is not None and _current.active:
        return _current
    if os.environ.get("UNSTUCK_FLIGHT_DIR") or "_unstuck_recorder" in sys.modules:
        return Watcher(None, None, "already watched by `unstuck run`")
    if not can_watch():
        print(f"unstuck: not watched: {what_works()}", file=sys.stderr)
        return Watcher(None, None, what_works())
    from unstuck.supervise.flight_folder import make_folder, remove_folder

    folder, why = make_folder()
    if folder is None:
        return Watcher(None, None, f"no flight files: {why}")
    try:
        helper = _start_helper(folder, stall_after, report)
        _record(folder)
    except Exception as fault:
        remove_folder(folder)
        return Watcher(None, None, f"{type(fault).__name__}: {fault}")
    _current = Watcher(helper, folder)
    atexit.register(_at_exit, _current)
    return _current


def _at_exit(watcher: Watcher) -> None:
    """Note why the process ends before the hooks are taken out."""
    from unstuck.recorder.hooks import processes

    processes.end.leaving()
    watcher.stop()


def _record(folder: str) -> None:
    """Hooks into this process; children inherit them through the environment, as below `unstuck run`."""
    from unstuck.recorder import start
    from unstuck.supervise.child import SITE

    start.start(folder, site=SITE)
    os.environ["UNSTUCK_FLIGHT_DIR"] = folder
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = SITE + (os.pathsep + before if before else "")


def _start_helper(
    folder: str, stall_after: float | None, report: str | os.PathLike[str] | None
) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "unstuck.supervise.helper", str(os.getpid()), folder]
    if stall_after is not None:
        words += ["--stall-after", str(stall_after)]
    if report is not None:
        words += ["--report", os.path.abspath(report)]
    # A pipe for standard input: it closes when this process ends, however it ends.
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
