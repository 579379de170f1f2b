"""Every training of the corpus that moves but goes nowhere is named; twins and hard healthy trainings stay silent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import FAULTS, Runner

ALL: dict[str, dict[str, Any]] = json.loads((FAULTS / "expected.json").read_text())
EXPECTED = {name: facts for name, facts in ALL.items() if facts["family"] in ("numerics", "learning")}
QUICK = (
    "pair-distance-root",  # a slope without end, traced to its line
    "standardised-constant-column",  # the data
    "cut-no-grad-encode",  # the graph
    "lost-heads-in-dict",  # what the optimizer does not have
    "ce-after-softmax",  # what the loss is given
    "step-decay-at-every-batch",  # rates
    "stopped-after-a-hundred-steps",  # the last resort
)
TWINS = ("pair-distance-root", "cut-no-grad-encode", "step-decay-at-every-batch")
SILENT = sorted(path.stem for path in (FAULTS / "learning_silent").glob("*.py"))
QUIET = ("gan_two_optimizers", "lbfgs_fit")
SEEDS = (0, 1, 2)


def cases(names: Any, quick: Any) -> list[Any]:
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in sorted(names)]


@pytest.mark.parametrize("name", cases(EXPECTED, QUICK))
def test_faulty_script_is_named(unstuck: Runner, name: str) -> None:
    facts = EXPECTED[name]
    script = FAULTS / "faulty" / f"{name}.py"
    outcome = unstuck.run(script)
    standing = [finding for finding in outcome.report["findings"] if not finding["withdrawn"]]
    assert standing, f"nothing said; stderr:\n{outcome.err[-3000:]}"
    first = standing[0]
    assert first["rule"] in facts["rules"], outcome.err[-3000:]
    assert (first["severity"] == "info") == (facts.get("severity") == "info"), first
    assert first["where"]["file"].endswith(script.name), first
    low, high = facts["line"]
    assert low - 3 <= first["where"]["line"] <= high + 3, (first["where"], facts["line"])
    assert len(first["evidence"]) >= 2
    assert first["fix"]["text"]
    assert outcome.report["probes_off"] == []


@pytest.mark.parametrize("name", cases(EXPECTED, TWINS))
def test_healthy_twin_is_silent(unstuck: Runner, name: str) -> None:
    outcome = unstuck.run(FAULTS / "healthy" / f"{name}.py")
    assert outcome.rules == [], outcome.err[-3000:]
    assert outcome.code == 0, outcome.err[-3000:]
    assert outcome.report["probes_off"] == []


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param(name, seed, marks=() if name in QUIET and seed == 0 else pytest.mark.slow)
        for name in SILENT
        for seed in SEEDS
    ],
)
def test_a_training_that_learns_is_left_alone(unstuck: Runner, name: str, seed: int) -> None:
    outcome = unstuck.run(FAULTS / "learning_silent" / f"{name}.py", "--seed", str(seed))
    assert outcome.loud == [], outcome.err[-3000:]
    assert outcome.code == 0, outcome.err[-3000:]
    assert outcome.report["probes_off"] == []


# --- trainings written without sight of the rules ------------------------------------------------------------

BLIND: dict[str, dict[str, Any]] = json.loads((FAULTS / "learning_blind.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BLIND))
def test_blind_script_is_named(unstuck: Runner, name: str) -> None:
    outcome = unstuck.run(FAULTS / "learning_blind" / f"{name}.py")
    standing = [finding for finding in outcome.report["findings"] if not finding["withdrawn"]]
    assert standing, outcome.err[-3000:]
    assert standing[0]["rule"] in BLIND[name]["rules"], outcome.err[-3000:]
    assert outcome.report["probes_off"] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BLIND))
def test_blind_twin_is_silent(unstuck: Runner, name: str) -> None:
    outcome = unstuck.run(FAULTS / "learning_blind" / f"{name}_ok.py")
    assert outcome.loud == [], outcome.err[-3000:]
    assert outcome.code == 0, outcome.err[-3000:]
