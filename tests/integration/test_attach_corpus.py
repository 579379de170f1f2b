"""`attach` to what plain `python` runs: hangs are named as `run` names them, healthy trainings are left alone."""

from __future__ import annotations

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

ALL: dict[str, dict[str, Any]] = json.loads((FAULTS / "expected.json").read_text())
HANGS = {name: facts for name, facts in ALL.items() if facts["family"] == "hang" and not facts.get("device")}
QUICK = ("flock-shard-pairs", "fifo-in-manifest", "spin-foreground-crop")
NO_MEASURE, NO_END = "how long a sample takes", "cannot be seen from outside"
UNKNOWABLE = {
    "lockf-registry-indexer": "holds, while others of this run are at work",
    "pause-for-scheduler": "has been at",
    "ranks-one-stuck-in-data": NO_MEASURE,
    "ranks-wait-for-checkpoint": "only its own code knows what for",
    "retry-same-class": NO_MEASURE,
    "spin-bucket-sampler": NO_MEASURE,
    "spin-decode-until-eos": NO_END,
    "spin-line-search": NO_END,
    "spin-record-reader": NO_MEASURE,
    "spin-regex-transform": NO_MEASURE,
    "spin-wait-for-flag": NO_END,
    "stale-checkpoint-lock": "cannot be read here",
}
"""What cannot be known from outside, and the words in which `attach` says why."""
STANDS = 16.0
"""Seconds that a script is left alone: it has begun, and has stood for as long as a wait must to be told."""

RUNNING = FAULTS.parent / "attach"
KINDS: dict[str, dict[str, Any]] = json.loads((RUNNING / "running.json").read_text())
QUICK_KINDS = ("two_workers", "tokenise_plain", "ddp_rank0_evaluates")


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
        for child in psutil.Process(process.pid).children(recursive=True):  # torchrun's ranks have their own groups
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


@pytest.mark.parametrize("name", cases(sorted(HANGS), QUICK))
def test_hang_is_named_from_outside(unstuck: Runner, name: str) -> None:
    facts = HANGS[name]
    script = FAULTS / "faulty" / f"{name}.py"
    with started(unstuck.folder, [sys.executable, str(script)], facts.get("env")) as process:
        time.sleep(STANDS)
        assert process.poll() is None
        told = attached(unstuck, process.pid)
        assert process.poll() is None, "it goes on as if nobody had looked"
    loud = [finding for finding in told["findings"] if finding["severity"] != "info"]
    if name in UNKNOWABLE:
        assert loud == []
        assert told["attach"]["state"] in ("unclear", "running")
        assert UNKNOWABLE[name] in " ".join(told["attach"]["reasons"])
        return
    assert loud, told["attach"]
    assert loud[0]["rule"] in facts["rules"]
    spots = [facts[key] for key in ("line", "blocked") if key in facts]
    line = loud[0]["where"]["line"]
    assert line is None or any(low - 3 <= line <= high + 3 for low, high in spots), (loud[0]["where"], spots)
    if "sample" in facts:
        assert loud[0]["where"]["sample"] == facts["sample"]
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
