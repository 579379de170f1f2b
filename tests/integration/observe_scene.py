"""A stage for observer tests: starts small scripts, looks until they stand as expected, and clears everything away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from unstuck.model import Look, Process, Thread, Wait
from unstuck.observer.look import Observer

PATIENCE = 15.0


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, script: str, *args: str, **options: Any) -> subprocess.Popen[bytes]:
        file = self.folder / f"script{len(self._started)}.py"
        file.write_text(textwrap.dedent(script))
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen([sys.executable, str(file), *args], start_new_session=True, **options)
        self._started.append(process)
        return process

    def until(self, observer: Observer, ready: Callable[[Look], object]) -> Look:
        """Cheap looks until it stands as expected, then one with stacks, during which nobody may have moved."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if _holds(ready, observer.look(stacks=False)):
                look = observer.look()
                if _holds(ready, look) and _still(look, observer.look(stacks=False)):
                    return look
            time.sleep(0.05)
        raise AssertionError(f"never stood as expected; last seen:\n{observer.look()}")

    def clear(self) -> None:
        for process in self._started:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
            process.wait(10)


def _still(look: Look, after: Look) -> bool:
    """No waiting thread ran in between (one that was asked by signal did: it answered)."""

    def switches(look: Look, pids: set[int]) -> list[tuple[int, int]]:
        threads = (thread for process in look.processes if process.pid in pids for thread in process.threads)
        return [(thread.tid, thread.switches) for thread in threads if thread.wait and thread.wait.kind != "running"]

    pids = {process.pid for process in look.processes if process.stacks_by == "py-spy"}
    return switches(look, pids) == switches(after, pids)


def _holds(ready: Callable[[Look], object], look: Look) -> bool:
    try:
        return bool(ready(look))
    except (AssertionError, IndexError, AttributeError):  # not all there yet
        return False


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    stage = Scene(tmp_path)
    yield stage
    stage.clear()


def main_thread(process: Process) -> Thread:
    assert process.main_thread is not None
    return process.main_thread


def wait_of(process: Process) -> Wait:
    wait = main_thread(process).wait
    assert wait is not None
    return wait


def kinds(look: Look) -> list[str]:
    """Kind of wait of each process's main thread, in tree order."""
    return [wait_of(process).kind for process in look.processes]
