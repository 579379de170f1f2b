"""--stop-on ends a run that goes on in vain, once, and leaves its healthy twin alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import FAULTS, Runner

SCRIPT = Path(__file__).parent / "scripts" / "classes.py"
STEPS_OF_AN_EPOCH = 64


def test_a_loss_that_is_no_number_ends_the_run(unstuck: Runner) -> None:
    outcome = unstuck.run(SCRIPT, "--eps", "0", "--epochs", "200", flags=("--stop-on", "error"))
    assert outcome.code == 3, outcome.err[-3000:]
    assert outcome.report["run"]["outcome"] == "stopped"
    assert outcome.report["run"]["steps"] < 100 * STEPS_OF_AN_EPOCH
    assert "done" not in outcome.out
    first = outcome.loud[0]
    assert (first["rule"], first["family"], first["severity"]) == ("nonfinite-born", "numerics", "error")
    assert not first["withdrawn"]
    assert outcome.err.count("stopping the run (--stop-on error)") == 1
    assert outcome.err.count("stopped the run: ") == 1
    assert outcome.err.count("stopping the run") == 1
    assert outcome.report["probes_off"] == []


def test_its_twin_runs_to_its_end(unstuck: Runner) -> None:
    outcome = unstuck.run(SCRIPT, "--epochs", "3", flags=("--stop-on", "warning"))
    assert outcome.code == 0, outcome.err[-3000:]
    assert outcome.loud == []
    assert "done" in outcome.out
    assert "stopping" not in outcome.err


@pytest.mark.slow
def test_on_hang_is_for_hangs_only(unstuck: Runner) -> None:
    outcome = unstuck.run(SCRIPT, "--eps", "0", "--epochs", "8", flags=("--on-hang", "stop"))
    assert outcome.code == 0, outcome.err[-3000:]
    assert outcome.rules[:1] == ["nonfinite-born"]
    assert "done" in outcome.out


NAN_THEN_HANG = """
import threading
import torch

model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ready = threading.Event()
for step in range(60):
    loss = torch.log(model(torch.randn(16, 8)).clamp_min(0)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
threading.Event().wait(3)
ready.wait()
"""


@pytest.mark.slow
def test_a_broken_loss_does_not_hide_a_hang(unstuck: Runner) -> None:
    script = unstuck.folder / "train.py"
    script.write_text(NAN_THEN_HANG)
    outcome = unstuck.run(script, flags=("--on-hang", "stop", "--stall-after", "2"), limit=60)
    assert outcome.code == 3, outcome.err[-3000:]
    assert {"numerics", "hang"} <= {finding["family"] for finding in outcome.loud}
    assert outcome.err.count("stopping the run (--on-hang stop)") == 1


@pytest.mark.slow
def test_a_hang_is_hopeless_too(unstuck: Runner) -> None:
    script = FAULTS / "faulty" / "barrier-missing-party.py"
    outcome = unstuck.run(script, flags=("--stop-on", "error", "--stall-after", "2"))
    assert outcome.code == 3, outcome.err[-3000:]
    assert outcome.loud[0]["family"] == "hang"
    assert outcome.err.count("stopping the run (--stop-on error)") == 1
