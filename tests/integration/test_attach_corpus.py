"""`attach` to what plain `python` runs: hangs are named as `run` names them, healthy trainings are left alone."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import FAULTS, Runner
from tests.corpus import FAULTY, Faulty, parameters
from tests.processes import running_below

HANGS = {name: script for name, script in FAULTY.items() if script.family == "hang" and not script.device}
STANDS = 16.0
"""Seconds that a script is left alone: it has begun, and has stood for as long as a wait must to be told."""

RUNNING = FAULTS.parent / "attach"
KINDS: dict[str, dict[str, Any]] = json.loads((RUNNING / "running.json").read_text())
QUICK_KINDS = ("two_workers",)


@contextmanager
def started(folder: Path, command: list[str], env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A script under plain python, in a session of its own, cleared away afterwards."""
    mark = {"UNSTUCK_TEST_MARK": str(folder), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, **mark, **(env or {})},
        )
    try:
        yield process
    finally:
        for child in running_below(process.pid):  # torchrun's ranks have their own groups
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        os.killpg(process.pid, signal.SIGKILL)
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def attached(unstuck: Runner, pid: int) -> dict[str, Any]:
    process = unstuck.start("attach", "--json", str(pid))
    out, err = process.communicate(timeout=120)
    assert process.returncode in (0, 1), err.decode()
    told: dict[str, Any] = json.loads(out)
    assert (process.returncode == 1) == any(f["severity"] != "info" for f in told["findings"])
    return told


def cases(names: list[str], quick: tuple[str, ...]) -> list[Any]:
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("script", parameters(HANGS, "attach"))
def test_hang_is_named_from_outside(unstuck: Runner, script: Faulty) -> None:
    with started(unstuck.folder, [sys.executable, str(script.path)], script.env) as process:
        time.sleep(STANDS)
        assert process.poll() is None
        told = attached(unstuck, process.pid)
        assert process.poll() is None, "it goes on as if nobody had looked"
    loud = [finding for finding in told["findings"] if finding["severity"] != "info"]
    if script.attach is not None:
        assert loud == []
        assert told["attach"]["state"] in ("unclear", "running")
        assert script.attach in " ".join(told["attach"]["reasons"])
        return
    assert loud, told["attach"]
    assert loud[0]["rule"] in script.rules
    where = loud[0]["where"]
    assert where["line"] is None or any(low <= where["line"] <= high for low, high in script.spots), where
    if script.sample is not None:
        assert where["sample"] == script.sample
    assert told["probes_off"] == []


@pytest.mark.parametrize("name", cases(sorted(KINDS), QUICK_KINDS))
def test_running_training_is_left_alone(unstuck: Runner, name: str) -> None:
    facts = KINDS[name]
    missing = [module for module in facts.get("needs", []) if importlib.util.find_spec(module) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    line = facts.get("launch", "PY SCRIPT").replace("SCRIPT", shlex.quote(str(RUNNING / "running" / f"{name}.py")))
    with started(unstuck.folder, shlex.split(line.replace("PY", sys.executable, 1))) as process:
        _until_ready(unstuck.folder / "output", process)
        time.sleep(3.0)
        told = attached(unstuck, process.pid)
        assert process.poll() is None
    assert [f["rule"] for f in told["findings"] if f["severity"] != "info"] == [], told["findings"]
    assert told["attach"]["state"] in ("running", "unclear")
    assert any(_same(told["attach"]["doing"], word) for word in facts["doing"]), (told["attach"], facts["doing"])
    assert told["probes_off"] == []


def _until_ready(output: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 90
    while b"READY" not in output.read_bytes():
        assert process.poll() is None, output.read_text()[-2000:]
        assert time.monotonic() < deadline, "it never came so far"
        time.sleep(0.2)


SAME = {
    "computing": ("forward pass", "backward pass", "optimizer step", "computing", "waiting for other ranks"),
    "training": ("forward pass", "backward pass", "optimizer step"),
    "loading data": ("loading data", "reading data", "waiting for data", "starting workers"),
    "waiting for another rank": ("waiting for other ranks", "backward pass"),
    "waiting for a child process": ("waiting for a child", "waiting for another thread or process", "waiting to read"),
    "waiting for the pool": ("waiting for a pool", "waiting for work it handed out"),
    "waiting for data": ("waiting for data", "waiting to read"),
    "stepping environments": ("waiting to read", "computing in its own code"),
    "preparing data": ("reading data", "computing in its own code"),
}
"""Other words for what the corpus calls by this one."""


def _same(word: str, wanted: str) -> bool:
    return wanted in word or word.startswith(SAME.get(wanted, (wanted,)))
