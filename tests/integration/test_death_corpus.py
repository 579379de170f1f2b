"""Every training of the corpus that dies is named and located; every healthy twin is silent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import FAULTS, Runner, can_mount

ALL: dict[str, dict[str, Any]] = json.loads((FAULTS / "expected.json").read_text())
MEMORY = ("out-of-memory-kill", "memory-leak-in-loop", "cuda-out-of-memory")
EXPECTED = {n: f for n, f in ALL.items() if f["family"] == "death" and f["rules"][0] not in MEMORY}
QUICK = ("record-half-written", "batchnorm-rest-of-one", "label-beyond-classes")
"""Twins that run in the default run; all of them do in the whole one."""


def cases(slow: bool = False) -> list[Any]:
    return [
        pytest.param(
            name,
            marks=[
                *([pytest.mark.slow] if slow and name not in QUICK else []),
                *([pytest.mark.skipif(not can_mount(), reason="needs mounts")] if facts.get("root") else []),
            ],
        )
        for name, facts in sorted(EXPECTED.items())
    ]


@pytest.mark.parametrize("name", cases())
def test_what_it_died_of_is_named(unstuck: Runner, name: str) -> None:
    facts = EXPECTED[name]
    script = FAULTS / "faulty" / f"{name}.py"
    launch = facts.get("launch", "PY SCRIPT")
    outcome = unstuck.run(script, flags=("--on-hang", "stop"), launch=launch, env=facts.get("env"))
    assert outcome.rules, f"nothing said; stderr:\n{outcome.err[-3000:]}"
    first = outcome.loud[0]
    assert outcome.rules == [first["rule"]], "one death, one cause"
    assert first["rule"] in facts["rules"], outcome.err[-3000:]
    if "line" in facts:
        assert first["where"]["file"].endswith(script.name), first
        spots = [facts[key] for key in ("line", "blocked") if key in facts]
        assert any(low <= first["where"]["line"] <= high for low, high in spots), (first["where"], spots)
    if "sample" in facts:
        assert first["where"]["sample"] == facts["sample"]
    assert len(first["evidence"]) >= 2
    assert first["fix"]["text"]
    assert outcome.code != 0
    assert outcome.report["probes_off"] == []
    assert first["title"].split(",")[0][:30] in " ".join(outcome.err.split())
    assert "step" in outcome.err.partition("── unstuck")[2]


@pytest.mark.parametrize("name", cases(slow=True))
def test_healthy_twin_is_silent(unstuck: Runner, name: str) -> None:
    facts = EXPECTED[name]
    launch = facts.get("healthy_launch", facts.get("launch", "PY SCRIPT"))
    outcome = unstuck.run(FAULTS / "healthy" / f"{name}.py", launch=launch, env=facts.get("env"))
    assert outcome.rules == [], outcome.err[-3000:]
    assert outcome.code == 0, outcome.err[-3000:]
    assert outcome.report["probes_off"] == []
    assert "unstuck" not in outcome.err
