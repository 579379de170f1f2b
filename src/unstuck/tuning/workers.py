"""The workers of a loader that is measured: what they use, and how they end."""

from __future__ import annotations

import os
import signal
import threading
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FAREWELL = 3.0
"""Seconds the workers have to end by themselves."""


def dismiss(iterator: Any, workers: list[Any], *, at_once: bool) -> None:
    """End the workers of an iterator: asked first, then told."""
    told = threading.Timer(0.1 if at_once else FAREWELL, _kill, (workers,))
    told.daemon = True
    told.start()
    with Unalarmed():
        try:
            if hasattr(iterator, "_shutdown_workers"):
                iterator._shutdown_workers()  # waits for them
        except Exception:
            pass
        for worker in workers:
            worker.join(FAREWELL + 2)
        told.cancel()


def _kill(workers: list[Any]) -> None:
    for worker in workers:
        try:
            if worker.is_alive():
                os.kill(worker.pid, signal.SIGKILL)
        except (OSError, ValueError, AssertionError):
            continue


class Unalarmed:
    """A worker that is killed by us is no reason for torch to raise; its handler is back afterwards."""

    def __enter__(self) -> None:
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGCHLD)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGCHLD, self._before)


class Quiet(warnings.catch_warnings):
    """No warning about more workers than cores: that is what is being found out."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore")


def private(worker: Any) -> int:
    try:
        with open(f"/proc/{worker.pid}/smaps_rollup", "rb") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Private_"))
    except (OSError, ValueError, IndexError):
        return 0


def schedule(process: str) -> tuple[float, float]:
    """Seconds a process was on a core, and ready for one that others had."""
    try:
        with open(f"/proc/{process}/schedstat", "rb") as file:
            used, waited = file.read().split()[:2]
        return int(used) / 1e9, int(waited) / 1e9
    except (OSError, ValueError):
        return 0.0, 0.0
