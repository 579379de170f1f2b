"""What grows with every step is named and located: memory, graphs, the time of a step. Healthy twins are silent."""

from __future__ import annotations

import json
from glob import glob
from typing import Any

import pytest

from tests.conftest import FAULTS, Runner

RULES = ("memory-leak-in-loop", "graph-grows-every-step", "step-time-grows", "cuda-out-of-memory")
ALL: dict[str, dict[str, Any]] = json.loads((FAULTS / "expected.json").read_text())
EXPECTED = {name: facts for name, facts in ALL.items() if facts["rules"][0] in RULES}
QUICK = ("mem-hook-activations", "graph-hidden-state")
"""Scripts of the default run; the whole run has all of them, and the twins."""
QUICK_TWINS = ("mem-hook-activations",)


def cases(quick: tuple[str, ...]) -> list[Any]:
    here = [name for name, facts in sorted(EXPECTED.items()) if not facts.get("device") or glob("/dev/nvidia[0-9]*")]
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in here]


@pytest.mark.parametrize("name", cases(QUICK))
def test_what_grows_is_named(unstuck: Runner, name: str) -> None:
    facts = EXPECTED[name]
    script = FAULTS / "faulty" / f"{name}.py"
    outcome = unstuck.run(script, flags=("--on-hang", "stop"))
    assert outcome.rules, f"nothing said; stderr:\n{outcome.err[-3000:]}"
    first = outcome.loud[0]
    assert first["rule"] in facts["rules"], outcome.err[-3000:]
    assert len(outcome.rules) == 1, "one cause, what follows from it beneath"
    assert first["where"]["file"].endswith(script.name), first
    low, high = facts["line"]
    assert low <= first["where"]["line"] <= high, (first["where"], facts["line"])
    assert len(first["evidence"]) >= 2
    assert first["fix"]["text"]
    assert outcome.report["probes_off"] == []
    if not facts.get("device"):
        assert first["severity"] == "warning", "a measured cost: the run came to its end"
        assert outcome.code == 0
        assert outcome.report["run"]["outcome"] == "finished"


@pytest.mark.parametrize("name", cases(QUICK_TWINS))
def test_healthy_twin_is_silent(unstuck: Runner, name: str) -> None:
    outcome = unstuck.run(FAULTS / "healthy" / f"{name}.py", flags=("--on-hang", "stop"))
    assert outcome.code == 0, outcome.err[-3000:]
    assert outcome.told == []
    assert outcome.report["probes_off"] == []
    assert "unstuck" not in outcome.err
