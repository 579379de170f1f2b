"""Trainings that wait are named with what they wait for and the line that costs the time; twins are left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import FAULTS, Runner

ALL: dict[str, dict[str, Any]] = json.loads((FAULTS / "expected.json").read_text())
EXPECTED = {name: facts for name, facts in ALL.items() if facts["family"] == "pace"}
QUICK = ("pace-sleeps-for-each-sample", "pace-workers-behind-one-lock")
"""Scripts of the default run: they sleep more than they compute."""


def cases(quick: tuple[str, ...]) -> list[Any]:
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in sorted(EXPECTED)]


@pytest.mark.parametrize("name", cases(QUICK))
def test_what_is_waited_for_is_named(unstuck: Runner, name: str) -> None:
    facts = EXPECTED[name]
    script = FAULTS / "faulty" / f"{name}.py"
    outcome = unstuck.run(script)
    severity = facts.get("severity", "warning")
    found = [f for f in outcome.report["findings"] if f["family"] == "pace"]
    if facts.get("alone") and facts["rules"][0] not in [f["rule"] for f in found]:
        pytest.skip("others use the machine: then it may not be said")
    assert [f["rule"] for f in found] == facts["rules"][:1], outcome.err[-3000:]
    first = found[0]
    assert first["severity"] == severity
    assert first["where"]["file"].endswith(script.name), first
    low, high = facts["line"]
    assert low <= first["where"]["line"] <= high, (first["where"], facts["line"])
    if severity != "info":
        assert len(first["evidence"]) >= 3
        assert any("as fast" in line for line in first["evidence"]), "a gain to expect"
    assert first["fix"]["text"]
    assert outcome.report["probes_off"] == []
    assert outcome.code == 0
    assert outcome.report["run"]["outcome"] == "finished"


@pytest.mark.parametrize("name", cases(()))
def test_healthy_twin_is_silent(unstuck: Runner, name: str) -> None:
    outcome = unstuck.run(FAULTS / "healthy" / f"{name}.py")
    assert outcome.code == 0, outcome.err[-3000:]
    assert outcome.loud == []
    assert outcome.report["probes_off"] == []
