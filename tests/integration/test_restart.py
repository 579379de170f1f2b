"""`unstuck run --restart`: a script that resumes from its own checkpoint comes through; one that cannot is let go."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Runner

LIMIT = 600  # two or three starts, on a machine that may be busy
SCRIPT = """
import os, sys, time
import torch
from torch import nn

dies_at, hangs_at, always = (int(word) for word in sys.argv[1:4])
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
first = torch.load("state.pt")["step"] if os.path.exists("state.pt") else 0
for step in range(first, 30):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    if step == always:
        raise ValueError("this batch again")
    torch.save({"step": step + 1}, "state.pt")
    if step in (dies_at, hangs_at) and not os.path.exists(f"was-at-{step}"):
        open(f"was-at-{step}", "w").close()
        if step == dies_at:
            raise RuntimeError("the node lost its power")
        import threading
        lock = threading.Lock(); lock.acquire(); lock.acquire()
print("done", first)
"""


@pytest.fixture
def script(unstuck: Runner) -> Path:
    path = unstuck.folder / "train.py"
    path.write_text(SCRIPT)
    return path


def test_it_goes_on_after_a_death(unstuck: Runner, script: Path) -> None:
    outcome = unstuck.run(script, "12", "-1", "-1", flags=("--restart", "2"), limit=LIMIT)
    assert (outcome.code, outcome.out) == (0, "done 13\n")
    assert "restart 1 of 2 in 1 s (uncaught-exception at train.py:" in outcome.err
    assert outcome.report["run"]["outcome"] == "finished"
    assert len(list((unstuck.folder / ".unstuck").glob("2*"))) == 2, "each start has its own folder"


def test_the_same_cause_at_the_same_step_ends_it(unstuck: Runner, script: Path) -> None:
    outcome = unstuck.run(script, "-1", "-1", "7", flags=("--restart", "9"), limit=LIMIT)
    assert outcome.code == 1
    assert outcome.err.count("restart 1 of 9") == 1
    assert "restart 2 of 9 in 2 s" in outcome.err, "the second start dies after fewer steps of its own"
    assert "not restarted: the same cause for the second time at the same step" in outcome.err


def test_it_goes_on_after_a_hang(unstuck: Runner, script: Path) -> None:
    flags = ("--restart", "1", "--restart-on", "hang", "--grace", "5")
    outcome = unstuck.run(script, "-1", "9", "-1", flags=flags, limit=LIMIT)
    assert (outcome.code, outcome.out) == (0, "done 10\n"), outcome.err
    assert "stopping the run (--on-hang stop)" in outcome.err
    assert "restart 1 of 1" in outcome.err


def test_without_it_nothing_is_started_again(unstuck: Runner, script: Path) -> None:
    outcome = unstuck.run(script, "12", "-1", "-1")
    assert outcome.code == 1
    assert "restart" not in outcome.err
