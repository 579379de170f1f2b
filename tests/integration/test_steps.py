"""A step is whatever repeats: trainings as people write them, with and without DataLoader and optimizer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Outcome, Runner

SCRIPTS = Path(__file__).parent / "scripts"
SAMPLED = 64
"""Steps that are watched closely at first: their losses are known in any case."""

UPDATES = [  # script, by how much the count may be off (of the last update nothing may be left to tell), passes
    pytest.param("steps_slices.py", 0, 4, marks=pytest.mark.slow),
    pytest.param("steps_generator.py", 0, 0, marks=pytest.mark.slow),
    pytest.param("steps_by_hand.py", 1, 20),
    pytest.param("steps_functional.py", 1, 10, marks=pytest.mark.slow),
    pytest.param("steps_data.py", 1, 8, marks=pytest.mark.slow),
    pytest.param("steps_gan.py", 0, 0),
    pytest.param("steps_accumulated.py", 1, 10, marks=pytest.mark.slow),
    pytest.param("steps_own_optimizer.py", 1, 6, marks=pytest.mark.slow),
    pytest.param("steps_dataset.py", 0, 3, marks=pytest.mark.slow),
    pytest.param("steps_own_trainer.py", 0, 12, marks=pytest.mark.slow),
    pytest.param("steps_adjoint.py", 1, 0, marks=pytest.mark.slow),
]


def run(unstuck: Runner, name: str) -> tuple[Outcome, int]:
    """The run, and the number that the script printed."""
    outcome = unstuck.run(SCRIPTS / name, flags=("--python", sys.executable))
    assert (outcome.code, outcome.report["probes_off"]) == (0, []), outcome.err
    return outcome, int(outcome.out.split()[1])


def losses(unstuck: Runner) -> int:
    """Losses that the Case knows of."""
    (kept,) = unstuck.folder.glob(".unstuck/*/case.json")
    learnings: list[dict[str, Any]] = json.loads(kept.read_text())["learnings"]
    return sum(series["count"] for learning in learnings for series in learning["losses"])


@pytest.mark.parametrize(("name", "off_by", "passes"), UPDATES)
def test_updates_are_steps(unstuck: Runner, name: str, off_by: int, passes: int) -> None:
    outcome, updates = run(unstuck, name)
    assert abs(outcome.report["run"]["steps"] - updates) <= off_by
    assert outcome.report["run"]["epochs"] == passes
    assert losses(unstuck) >= min(updates, SAMPLED)
    assert outcome.told == []


@pytest.mark.parametrize("name", ["steps_lbfgs.py", pytest.param("steps_lbfgs_rounds.py", marks=pytest.mark.slow)])
def test_closures_of_lbfgs(unstuck: Runner, name: str) -> None:
    """A step for twenty of them at the least, also where they are all within one call."""
    outcome, closures = run(unstuck, name)
    assert closures / 20 <= outcome.report["run"]["steps"] <= closures
    assert losses(unstuck) >= min(closures, SAMPLED)
    assert outcome.told == []
