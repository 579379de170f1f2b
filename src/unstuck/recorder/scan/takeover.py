"""Under `unstuck scan`: runs the script until its training loader is in use, scans that loader's data set, and waits
to be ended.

The training loader is the one whose batch came last before the first backward pass; without one, at the end of the
script, the first that was iterated. Of several processes the first to come so far scans; the others wait with it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from time import monotonic, sleep

from .. import facts, guard, user_code
from .. import layout as at
from ..probes.data import batch_statistics
from ..probes.death import failures
from . import plan as scan_plan
from . import progress, report, scan_pass
from .files import CLAIM, DONE, STOP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "UNSTUCK_SCAN"
TICK = 0.05
_first: list[Any] = []
_latest: list[Any] = []
_made: dict[int, dict[str, Any]] = {}
_over = False
_scans = False
"""It is this process that scans."""
_owner = os.getpid()
_folder = os.environ.get("UNSTUCK_FLIGHT_DIR", "")


def wanted() -> bool:
    return bool(os.environ.get(VARIABLE)) and not os.environ.get("UNSTUCK_SCANNING")


def opened(loader: Any) -> None:
    """A pass over a loader begins."""
    if os.getpid() != _owner or _over:
        return
    if not _first:
        _first.append(loader)
    _latest[:] = [loader]
    if id(loader) not in _made and len(_made) < 64:
        _made[id(loader)] = {"made": batch_statistics.made(loader, sys._getframe(1)), "site": user_code.call_site()}


def at_backward() -> None:
    """The training has begun."""
    if _latest and os.getpid() == _owner and not _over:
        run(_latest[0], trains=True)


def leaving() -> None:
    if _first and os.getpid() == _owner and not _over:
        run(_first[0], trains=False)


def run(loader: Any, trains: bool) -> None:
    """Scan, tell, and go no further. A fault of ours is told too."""
    global _over, _scans
    _over = True
    os.environ["UNSTUCK_SCANNING"] = "1"  # workers of ours, and what they start, are not to scan
    try:
        _scans = _claimed()
        if _scans:
            _hear_ctrl_c(signal.default_int_handler)
            told = scan(loader, trains, json.loads(os.environ[VARIABLE]))
            facts.tell_anew("scan", {"loaders": [told]}, at.SCANNED)
    except KeyboardInterrupt:
        pass
    except BaseException as fault:
        guard.off("scan", fault if isinstance(fault, Exception) else RuntimeError(repr(fault)))
    finally:
        _leave()


def scan(loader: Any, trains: bool, options: dict[str, Any]) -> dict[str, Any]:
    own = loader.__dict__
    workers = options.get("workers") or len(os.sched_getaffinity(0))
    plan = scan_plan.of(loader, options.get("limit"), workers)
    work = scan_pass.Scan(plan, float(options.get("seconds", 10.0)), _folder or None)
    bar = progress.Bar("unstuck: scanning")
    asked = _Asked(int(options.get("pid", 0)))

    def show(done: int, of: int | None) -> None:
        bar(done, of)
        asked.look()

    work.run(show)
    bar.clear()
    _hear_ctrl_c(signal.SIG_IGN)
    return {
        "loader": 0,
        "trains": trains,
        **report.about(plan),
        "sampler": type(own.get("sampler")).__qualname__,
        "batch_size": own.get("batch_size"),
        **_made.get(id(loader), {"made": None, "site": None}),
        **report.plain(work),
    }


def _hear_ctrl_c(handler: Any) -> None:
    try:
        signal.signal(signal.SIGINT, handler)
    except ValueError:  # not in the main thread
        pass


def _claimed() -> bool:
    """This process is the one that scans."""
    if not _folder:
        return True
    try:
        os.close(os.open(os.path.join(_folder, CLAIM), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    return True


class _Asked:
    """Looks, now and then, whether the one that started all this wants an end, or is gone."""

    def __init__(self, pid: int) -> None:
        self.pid = pid if pid and _lives(pid) else 0  # 0: it cannot be seen from here
        self.next = 0.0

    def look(self) -> None:
        if monotonic() < self.next or not _folder:
            return
        self.next = monotonic() + 0.3
        if not os.path.isdir(_folder) or (self.pid and not _lives(self.pid)):
            _end_workers()
            os.kill(os.getpid(), signal.SIGKILL)
        if os.path.exists(os.path.join(_folder, STOP)):
            raise KeyboardInterrupt


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _leave() -> None:
    """Wait to be ended, from the top: a script that started this process must not take it for trained. What either
    would do on its way out is no longer wanted."""
    _end_workers()
    _unlink_semaphores()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    asked = _Asked(int(json.loads(os.environ[VARIABLE]).get("pid", 0)))
    try:
        if _folder and os.path.isdir(_folder):
            if _scans:
                open(os.path.join(_folder, DONE), "w").close()
            while os.path.isdir(_folder) and (not asked.pid or _lives(asked.pid)):
                sleep(TICK)
    finally:
        os._exit(1)


def _end_workers() -> None:
    for iterator in failures.living():
        for worker in iterator.__dict__.get("_workers") or ():
            try:
                worker.kill()
            except (AttributeError, OSError, ValueError):
                continue


def _unlink_semaphores() -> None:
    """Those of the loader's queues: left as they are, Python would speak of a leak."""
    util, synchronize = sys.modules.get("multiprocessing.util"), sys.modules.get("multiprocessing.synchronize")
    if util is None or synchronize is None:
        return
    try:
        for each in list(util._finalizer_registry.values()):
            if each._callback == synchronize.SemLock._cleanup:
                each()
    except (AttributeError, OSError):
        pass
