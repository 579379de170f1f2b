"""The observed training is sacred: the same output to the last byte with and without us."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Runner

SCRIPTS = Path(__file__).parent / "scripts"
LIMIT = 300


def timeless(text: str) -> str:
    """Lines of torch's log without their time and pid."""
    return re.sub(r"^([A-Z]\d{4}) \S+ \d+ ", r"\1 ", text, flags=re.MULTILINE)


def compare(unstuck: Runner, name: str, *words: str, code: int = 0) -> str:
    """Run a script by itself and below unstuck; both must say the same. Gives what it said."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "UNSTUCK_TEST_MARK": str(unstuck.folder)}
    command = [sys.executable, str(SCRIPTS / name), *words]
    alone = subprocess.run(
        command, cwd=unstuck.folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT
    )
    assert alone.returncode == code, alone.stderr
    watched = unstuck.run(
        SCRIPTS / name, *words, flags=("--python", sys.executable), limit=LIMIT, stdin=subprocess.DEVNULL
    )
    assert watched.out == alone.stdout
    assert timeless(watched.err) == timeless(alone.stderr)
    assert watched.code == code
    assert watched.told == []
    assert [off for off in watched.report["probes_off"] if off["probe"] != "py-spy"] == []
    assert watched.report["run"]["exit_code"] == code
    return alone.stdout


def test_training_in_one_process(unstuck: Runner) -> None:
    out = compare(unstuck, "training.py", "5", code=5)
    for part in (
        "lbfgs",
        "checkpointing",
        "per sample",
        "scripted backward",
        "copied",
        "interrupted after 16",
        "failed",
    ):
        assert part in out
    assert out.count("handled") == 1


@pytest.mark.parametrize(
    ("workers", "method"),
    [
        pytest.param("0", "fork", marks=pytest.mark.slow),
        ("2", "fork"),
        pytest.param("2", "spawn", marks=pytest.mark.slow),
        pytest.param("2", "forkserver", marks=pytest.mark.slow),
    ],
)
def test_loaders(unstuck: Runner, workers: str, method: str) -> None:
    out = compare(unstuck, "loaders.py", workers, method)
    assert workers == "0" or "persistent 0x" in out
    if method == "fork":
        assert "plain 0x" in out
        assert "key error KeyError" in out
        assert "lists list" in out


@pytest.mark.slow  # in the default run `beside.py` compiles a whole graph
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_compiled_training(unstuck: Runner, backend: str) -> None:
    out = compare(unstuck, "compiled.py", backend)
    assert "train step 0x" in out


def test_what_stands_beside_a_training(unstuck: Runner) -> None:
    """Forked workers find no threads of ours: what we compute in the training process must start no pool, since its
    threads are lost in a fork and its locks are not. Warnings name the line of the script. Modes, a compiled clip and
    models long gone do not notice us."""
    out = compare(unstuck, "several.py", "forks_threads.py", "warned.py", "beside.py")
    assert "it has ended\nwarned.py\nbeside.py\n" in out
    assert "child 7" in out
    assert "alive 0" in out


def test_training_that_breaks(unstuck: Runner) -> None:
    """Also when a NaN was traced to its line: the same bits, buffers and random numbers."""
    words = ("log", "data", "root")
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPTS / "breaks.py"), *words]
    alone = subprocess.run(command, cwd=unstuck.folder, env=env, capture_output=True, text=True, timeout=LIMIT)
    assert alone.returncode == 0, alone.stderr
    watched = unstuck.run(SCRIPTS / "breaks.py", *words, flags=("--python", sys.executable), limit=LIMIT)
    assert watched.out == alone.stdout
    assert watched.report["probes_off"] == []
    assert watched.rules[0] in ("nonfinite-born", "nonfinite-input")
    assert "anomaly mode False" in alone.stdout
