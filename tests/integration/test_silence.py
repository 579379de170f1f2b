"""Healthy runs that stand still for a while are left alone, with `--on-hang stop` and the default times."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import FAULTS, Runner

SILENT: dict[str, dict[str, Any]] = json.loads((FAULTS / "silent.json").read_text())


def scripts() -> list[Any]:
    return [pytest.param(n, marks=pytest.mark.slow if f.get("slow") else ()) for n, f in sorted(SILENT.items())]


@pytest.mark.parametrize("name", scripts())
def test_it_is_left_alone(unstuck: Runner, name: str) -> None:
    outcome = unstuck.run(FAULTS / "silent" / f"{name}.py", flags=("--on-hang", "stop"), limit=400)
    assert outcome.code == 0, outcome.err[-3000:]
    assert outcome.report["findings"] == []
    assert outcome.report["run"]["outcome"] == "finished"
    assert "unstuck" not in outcome.err
