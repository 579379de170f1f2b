"""Every faulty script of the corpus is named and located; every healthy twin is silent."""

from __future__ import annotations

import json
import signal
from glob import glob
from typing import Any

import pytest

from tests.conftest import FAULTS, Runner

ALL: dict[str, dict[str, Any]] = json.loads((FAULTS / "expected.json").read_text())
EXPECTED = {name: facts for name, facts in ALL.items() if facts["family"] == "hang"}
SAMPLE = {
    facts["rules"][0]: name for name, facts in sorted(EXPECTED.items(), reverse=True) if not facts.get("looks_alike")
}
"""One script a rule for the default run; not one whose stacks look alike for as long as the short times here allow."""


TWINS = ("flock-own-handle", "pause-for-scheduler", "queue-full-at-exit")
"""Twins of the default run."""


def cases(quick: Any) -> list[Any]:
    here = [name for name, facts in sorted(EXPECTED.items()) if not facts.get("device") or glob("/dev/nvidia[0-9]*")]
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in here]


@pytest.mark.parametrize("name", cases(SAMPLE.values()))
def test_faulty_script_is_named(unstuck: Runner, name: str) -> None:
    facts = EXPECTED[name]
    script = FAULTS / "faulty" / f"{name}.py"
    outcome = unstuck.run(
        script,
        flags=("--on-hang", "stop", "--stall-after", "2"),
        env=facts.get("env"),
        limit=20 if facts.get("before_any_seam") else 90,
    )
    assert outcome.rules, f"nothing said; stderr:\n{outcome.err[-3000:]}"
    first = outcome.loud[0]
    assert first["rule"] in facts["rules"], outcome.err[-3000:]
    assert first["where"]["file"].endswith(script.name), first
    spots = [facts[key] for key in ("line", "blocked") if key in facts]
    assert first["where"]["line"] is None or any(
        low - 3 <= first["where"]["line"] <= high + 3 for low, high in spots
    ), (first["where"], spots)
    if "sample" in facts:
        assert first["where"]["sample"] == facts["sample"]
    assert first["evidence"]
    assert first["fix"]["text"]
    # Before any seam was passed the clock alone gives no verdict: there the answer comes at Ctrl-C.
    assert outcome.code == (-signal.SIGINT if facts.get("before_any_seam") else 3)


@pytest.mark.parametrize("name", cases(TWINS))
def test_healthy_twin_is_silent(unstuck: Runner, name: str) -> None:
    facts = EXPECTED[name]
    outcome = unstuck.run(FAULTS / "healthy" / f"{name}.py", flags=("--on-hang", "stop"), env=facts.get("env"))
    assert outcome.rules == [], outcome.err[-3000:]
    assert outcome.code == 0, outcome.err[-3000:]
    assert "unstuck" not in outcome.err
