"""Under `unstuck scan`: runs the script until its training loader is in use, scans that loader's dataset, and waits to
be ended.

The training loader is the one whose batch came last before the first backward pass; without one, at the end of the
script, the first that was iterated. Of several processes the first to come so far scans; the others wait with it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from time import monotonic, sleep

from .. import dispatch, guard, journal, objects, user_code
from .. import layout as at
from ..probes.data import loader_source
from . import plan as scan_plan
from . import progress, report, scan_pass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..records import Site
    from ..records.data import Scanned

VARIABLE = "UNSTUCK_SCAN"
TICK = 0.05
MANY = 64
"""Loaders of which it is known where they are made."""


def wanted() -> bool:
    return bool(os.environ.get(VARIABLE)) and not os.environ.get("UNSTUCK_SCANNING")


class Takeover:
    """Of this process, until it has scanned."""

    def __init__(self) -> None:
        self.first: Any = None
        self.latest: Any = None
        self.over = not wanted()
        self.scans = False
        """It is this process that scans."""
        self._sites: dict[int, tuple[Site | None, Site | None]] = {}
        """By place of a loader in memory: where it is iterated, and made."""
        self._owner = os.getpid()
        self._folder = os.environ.get("UNSTUCK_FLIGHT_DIR", "")

    def opened(self, loader: Any) -> None:
        """A pass over a loader begins."""
        if os.getpid() != self._owner or self.over:
            return
        self.first = loader if self.first is None else self.first
        self.latest = loader
        if id(loader) not in self._sites and len(self._sites) < MANY:
            self._sites[id(loader)] = user_code.call_site(), loader_source.made(loader, sys._getframe(1))

    def at_backward(self) -> None:
        """The training has begun."""
        if self.latest is not None and os.getpid() == self._owner and not self.over:
            self.run(self.latest, trains=True)

    def leaving(self) -> None:
        if self.first is not None and os.getpid() == self._owner and not self.over:
            self.run(self.first, trains=False)

    def run(self, loader: Any, trains: bool) -> None:
        """Scan, tell, and go no further. A fault of ours is told too."""
        self.over = True
        os.environ["UNSTUCK_SCANNING"] = "1"  # workers of ours, and what they start, are not to scan
        options = json.loads(os.environ[VARIABLE])
        try:
            self.scans = self._claimed()
            if self.scans:
                _hear_ctrl_c(signal.default_int_handler)
                journal.replace(self.scan(loader, trains, options), at.SCANNED)
        except KeyboardInterrupt:
            pass
        except BaseException as fault:
            guard.off("scan", fault if isinstance(fault, Exception) else RuntimeError(repr(fault)))
        finally:
            self._leave(_Asked(self._folder, options))

    def scan(self, loader: Any, trains: bool, options: dict[str, Any]) -> Scanned:
        workers = options.get("workers") or len(os.sched_getaffinity(0))
        plan = scan_plan.of(loader, options.get("limit"), workers)
        work = scan_pass.Scan(plan, float(options.get("seconds", 10.0)), self._folder or None)
        bar = progress.Bar("unstuck: scanning")
        asked = _Asked(self._folder, options)

        def show(done: int, of: int | None) -> None:
            bar(done, of)
            asked.look()

        work.run(show)
        bar.clear()
        _hear_ctrl_c(signal.SIG_IGN)
        site, made = self._sites.get(id(loader), (None, None))
        sampler = objects.class_name(type(loader.__dict__.get("sampler")))
        return report.record(work, report.about(plan, site, made, sampler), trains)

    def _claimed(self) -> bool:
        """This process is the one that scans."""
        if not self._folder:
            return True
        try:
            open(os.path.join(self._folder, at.SCAN_CLAIMED), "x").close()
        except FileExistsError:
            return False
        return True

    def _leave(self, asked: _Asked) -> None:
        """Wait to be ended, from the top: a script that started this process must not take it for trained. What either
        would do on its way out is no longer wanted."""
        _end_workers()
        _unlink_semaphores()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                continue
        try:
            if asked.waits() and self.scans:
                open(os.path.join(self._folder, at.SCAN_DONE), "w").close()
            while asked.waits():
                sleep(TICK)
        finally:
            os._exit(1)


class _Asked:
    """Looks, now and then, whether the one that started all this wants an end, or is gone."""

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        pid = int(options.get("pid", 0))
        self.folder = folder
        self.pid = pid if pid and _lives(pid) else 0  # 0: it cannot be seen from here
        self.next = 0.0

    def waits(self) -> bool:
        return os.path.isdir(self.folder) and (not self.pid or _lives(self.pid))

    def look(self) -> None:
        if monotonic() < self.next or not self.folder:
            return
        self.next = monotonic() + 0.3
        if not self.waits():
            _end_workers()
            os.kill(os.getpid(), signal.SIGKILL)
        if os.path.exists(os.path.join(self.folder, at.SCAN_STOP)):
            raise KeyboardInterrupt


def _hear_ctrl_c(handler: Any) -> None:
    try:
        signal.signal(signal.SIGINT, handler)
    except ValueError:  # not in the main thread
        pass


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _end_workers() -> None:
    for iterator in dispatch.probe("failures").living():
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


_takeover = Takeover()
opened, at_backward, leaving = _takeover.opened, _takeover.at_backward, _takeover.leaving
