"""pytest --unstuck, and the fixture, in a pytest of their own."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

TESTS = """
import threading
import torch
from torch.utils.data import DataLoader, TensorDataset

X = torch.randn(256, 4)
Y = (X.sum(1) > 0).long()

def train(rate, hangs=False):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    lock = threading.Lock()
    for _ in range(16):
        for x, y in DataLoader(TensorDataset(X, Y), 8, shuffle=True):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            if hangs:
                lock.acquire()
                lock.acquire()
    return loss.item()

def test_plain():
    assert 1 + 1 == 2

def test_hangs():
    train(0.1, hangs=True)

def test_healthy():
    assert train(0.1) < 1

def test_in_vain():
    assert train(1000.0) < 1
"""
FIXTURE = """
def test_watched_healthy(unstuck):
    train(0.1)

def test_watched_in_vain(unstuck):
    train(1000.0)

def test_watched_hangs(unstuck):
    train(0.1, hangs=True)
"""


def run(tmp_path: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "test_training.py").write_text(tests)
    plugin = ["-p", "unstuck.pytest_plugin"]  # as its entry point does where unstuck is installed
    if any(entry.name == "unstuck" for entry in entry_points(group="pytest11")):
        plugin = []
    command = [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", "-W", "error", *options, "."]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)


def test_a_test_that_hangs_is_explained(tmp_path: Path) -> None:
    done = run(tmp_path, TESTS, "--unstuck", "--unstuck-stall-after", "3", "-v", "-k", "plain or hangs")
    assert "test_plain PASSED" in done.stdout, done.stdout + done.stderr
    assert "test_hangs FAILED" in done.stdout
    assert "[lock-never-released]" in done.stdout


@pytest.mark.slow  # where others use the machine, what a short training does may not be seen
def test_what_hangs_or_trains_in_vain_is_explained(tmp_path: Path) -> None:
    done = run(tmp_path, TESTS, "--unstuck", "--unstuck-stall-after", "3", "-v")
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("test_training.py::test_")]
    assert [line[1] for line in lines[:4]] == ["PASSED", "FAILED", "PASSED", "FAILED"], done.stdout + done.stderr
    assert "Stuck: The main process" in done.stdout
    assert "[lock-never-released]" in done.stdout
    _, _, summary = done.stdout.rpartition("= unstuck =")
    assert "test_training.py::test_hangs: error: " in summary
    assert "test_training.py::test_in_vain: error: The learning rate of 1000 is too high" in summary
    assert done.stdout.count("Try a learning rate of ") == 1, "once, in the report of the test"
    assert done.stderr == ""


@pytest.mark.slow
def test_the_fixture_fails_a_training_in_vain(tmp_path: Path) -> None:
    done = run(tmp_path, TESTS + FIXTURE, "--unstuck-stall-after", "3", "-v", "-k", "watched")
    assert "test_watched_healthy PASSED" in done.stdout, done.stdout + done.stderr
    assert "test_watched_in_vain ERROR" in done.stdout
    assert "The learning rate of 1000 is too high" in done.stdout
    assert "test_watched_hangs FAILED" in done.stdout
    assert "lock-never-released" in done.stdout


def test_nothing_of_unstuck_is_loaded_until_it_is_asked_for(tmp_path: Path) -> None:
    lines = """
def test_modules():
    import sys
    assert sorted(name for name in sys.modules if name.startswith("unstuck")) == [
        "unstuck", "unstuck.pytest_plugin", "unstuck.version"
    ]
"""
    done = run(tmp_path, lines)
    assert done.returncode == 0, done.stdout
