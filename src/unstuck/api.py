"""`unstuck.watch()`: the same recorder and supervisor, from inside a script or notebook that is already running."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys

from unstuck.platforms import can_watch, what_works

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from unstuck.model import Finding
    from unstuck.notebook import Cells
    from unstuck.said import Listener

_current: Watcher | None = None


class Watcher:
    """A watch in progress. Ends by itself with the process; `stop()` or a `with` block end it earlier."""

    def __init__(self, helper: subprocess.Popen[bytes] | None, folder: str | None, note: str = "") -> None:
        self._helper = helper
        self._folder = folder
        self._listener: Listener | None = None
        self._cells: Cells | None = None
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
        stop_recording()
        atexit.unregister(_at_exit)
        if self._cells is not None:
            self._cells.close()
        dismiss(helper)
        try:
            helper.wait(10)
        except subprocess.TimeoutExpired:
            helper.kill()
            helper.wait()
        if self._listener is not None:
            self._listener.close()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def watch(
    *,
    stall_after: float | None = None,
    report: str | os.PathLike[str] | None = None,
    on_finding: Callable[[Finding], object] | None = None,
) -> Watcher:
    """Watch this process and its workers from here on; findings appear on standard error, in a notebook beneath the
    cell that runs.

    Call it before the loaders are built. `on_finding` is called with each new finding, and once more if it is
    withdrawn, from a thread of its own: the training may be stuck. Under `unstuck run` watch() does nothing: everything
    is watched already. It never raises for a reason of its own: where nothing can be watched, the Watcher has a `note`
    that says why.
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
        _current = _begin(folder, stall_after, report, on_finding)
    except Exception as fault:
        remove_folder(folder)
        return Watcher(None, None, f"{type(fault).__name__}: {fault}")
    atexit.register(_at_exit, _current)
    return _current


def _begin(
    folder: str,
    stall_after: float | None,
    report: str | os.PathLike[str] | None,
    on_finding: Callable[[Finding], object] | None,
) -> Watcher:
    shell = None
    if "IPython" in sys.modules:
        from unstuck import notebook

        shell = notebook.shell()
    listens = on_finding is not None or shell is not None
    watcher = Watcher(start_helper(folder, stall_after, report, says=listens), folder)
    record(folder)
    if shell is not None:
        watcher._cells = notebook.Cells(shell)
    if listens:
        from unstuck.said import Listener

        assert watcher._helper is not None
        assert watcher._helper.stdout is not None
        watcher._listener = Listener(watcher._helper.stdout, on_finding, notebook.show if shell is not None else None)
    return watcher


def _at_exit(watcher: Watcher) -> None:
    """Note why the process ends before the hooks are taken out."""
    from unstuck.recorder.hooks import processes

    if watcher.active:
        processes.end.leaving()
    watcher.stop()


def record(folder: str) -> None:
    """Hooks into this process; children inherit them through the environment, as below `unstuck run`."""
    from unstuck.recorder import start
    from unstuck.supervise.child import SITE

    start.start(folder, site=SITE)
    os.environ["UNSTUCK_FLIGHT_DIR"] = folder
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = SITE + (os.pathsep + before if before else "")


def stop_recording() -> None:
    """Hooks out, and the environment as it was but for what the script has changed since."""
    from unstuck.recorder import start
    from unstuck.supervise.child import SITE

    start.finish()
    os.environ.pop("UNSTUCK_FLIGHT_DIR", None)
    own, _, before = os.environ.get("PYTHONPATH", "").partition(os.pathsep)
    if own == SITE:
        os.environ.pop("PYTHONPATH")
        if before:
            os.environ["PYTHONPATH"] = before


def dismiss(helper: subprocess.Popen[bytes]) -> None:
    """Its sign to finish. Not only closed: workers that were forked while it was open have it too."""
    assert helper.stdin is not None
    try:
        helper.stdin.write(b"\n")
        helper.stdin.close()
    except OSError:
        pass  # it is gone


def start_helper(
    folder: str,
    stall_after: float | None,
    report: str | os.PathLike[str] | None,
    *,
    says: bool = False,
    wake: int = 0,
) -> subprocess.Popen[bytes]:
    """`says`: findings come on its standard output too; `wake`: a signal that it sends us when we are stuck."""
    words = [sys.executable, "-m", "unstuck.supervise.helper", str(os.getpid()), folder]
    if stall_after is not None:
        words += ["--stall-after", str(stall_after)]
    if report is not None:
        words += ["--report", os.path.abspath(report)]
    if says:
        words.append("--says")
    if wake:
        words += ["--wake", str(wake)]
    # A pipe for standard input: it closes when this process ends, however it ends.
    out = subprocess.PIPE if says else subprocess.DEVNULL
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=out, start_new_session=True)
