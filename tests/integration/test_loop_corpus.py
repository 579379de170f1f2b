"""Every training of the corpus that never ends, or goes round on the same data, is named; every twin is silent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import FAULTS, Runner

ALL: dict[str, dict[str, Any]] = json.loads((FAULTS / "expected.json").read_text())
GROWING = ("step-time-grows", "graph-grows-every-step")
EXPECTED = {n: f for n, f in ALL.items() if f["family"] == "loop" and f["rules"][0] not in GROWING}
SAMPLE = {facts["rules"][0]: name for name, facts in sorted(EXPECTED.items(), reverse=True)}
del SAMPLE["loader-rebuilt-every-step"]  # half a minute
"""One script a rule for the default run, but for one that takes too long."""
TWINS = ("stop-inner-break",)
"""Twins that run in the default run."""
ENDLESS = ("endless-epoch", "stop-condition-never-met")


def cases(quick: Any) -> list[Any]:
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in sorted(EXPECTED)]


@pytest.mark.parametrize("name", cases(SAMPLE.values()))
def test_faulty_script_is_named(unstuck: Runner, name: str) -> None:
    facts = EXPECTED[name]
    script = FAULTS / "faulty" / f"{name}.py"
    outcome = unstuck.run(script, flags=("--on-hang", "stop", "--stall-after", "2"))
    assert outcome.rules, f"nothing said; stderr:\n{outcome.err[-3000:]}"
    first = outcome.loud[0]
    assert first["rule"] in facts["rules"], outcome.err[-3000:]
    assert first["where"]["file"].endswith(script.name), first
    spots = [facts[key] for key in ("line", "blocked") if key in facts]
    assert any(low - 3 <= first["where"]["line"] <= high + 3 for low, high in spots), (first["where"], spots)
    assert len(first["evidence"]) >= 2
    assert first["fix"]["text"]
    assert outcome.report["probes_off"] == []
    if first["rule"] in ENDLESS:
        assert outcome.code == 3, "an endless loop is ended"


@pytest.mark.parametrize("name", cases(TWINS))
def test_healthy_twin_is_silent(unstuck: Runner, name: str) -> None:
    outcome = unstuck.run(FAULTS / "healthy" / f"{name}.py", flags=("--on-hang", "stop"))
    assert outcome.rules == [], outcome.err[-3000:]
    assert outcome.code == 0, outcome.err[-3000:]
    assert outcome.report["probes_off"] == []
