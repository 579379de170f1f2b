"""Healthy runs that stand still for a while are left alone, with `--on-hang stop` and the default times."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import FAULTS, Runner

SILENT: dict[str, dict[str, Any]] = json.loads((FAULTS / "silent.json").read_text())


QUICK = 14
"""Seconds; what takes longer is for the whole run of the corpus."""


def scripts() -> list[Any]:
    longer = {name for name, facts in SILENT.items() if facts.get("slow") or facts["seconds"] > QUICK}
    return [pytest.param(name, marks=pytest.mark.slow if name in longer else ()) for name in sorted(SILENT)]


@pytest.mark.parametrize("name", scripts())
def test_it_is_left_alone(unstuck: Runner, name: str) -> None:
    outcome = unstuck.run(FAULTS / "silent" / f"{name}.py", flags=("--on-hang", "stop"), limit=400)
    assert outcome.code == 0, outcome.err[-3000:]
    waits = SILENT[name].get("waits", False)  # it is slow, and that may be said
    assert [f for f in outcome.told if not (waits and f["family"] == "pace")] == []
    assert outcome.report["run"]["outcome"] == "finished"
    assert waits or "unstuck" not in outcome.err
