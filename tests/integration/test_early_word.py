"""A standstill that is not proven: one line early, one when it is over, and no finding."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import Runner

SCRIPT = Path(__file__).parent / "scripts" / "lock_held_for_a_while.py"


@pytest.mark.slow
def test_a_lock_held_by_a_living_process_is_named_early_and_taken_back(unstuck: Runner) -> None:
    outcome = unstuck.run(SCRIPT, flags=("--python", sys.executable))
    lines = [line for line in outcome.err.splitlines() if line.startswith("unstuck: ")]
    assert outcome.code == 0, outcome.err
    said = [line for line in lines if "still watching" in line]
    assert len(said) == 1, outcome.err
    assert "no batch for" in said[0]
    assert "worker 0" in said[0]
    assert "shard.lock" in said[0]
    over = [line for line in lines if "moving again after" in line]
    assert len(over) == 1, outcome.err
    assert lines.index(said[0]) < lines.index(over[0])
    assert outcome.loud == []
