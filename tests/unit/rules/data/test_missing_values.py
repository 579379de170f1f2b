"""missing-values, on Cases made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.rules.data.tables import about, findings, normal, record
from unstuck.recorder.probes.data.statistics import Gathered
from unstuck.rules.data.contents import is_code


@pytest.mark.parametrize("value", [-999.0, 9999.0, 1e9, -1e6, 99999.0, 65535.0])
def test_codes_are_known(value: float) -> None:
    assert is_code(value)
    x = normal()
    x[::40, 2] = value
    found = findings(about(x))
    assert list(found) == ["missing-values"]
    assert found["missing-values"].severity == "info"
    assert "column 2" in found["missing-values"].title
    assert found["missing-values"].where.line == 5


def test_nan_and_infinity_name_their_samples() -> None:
    x = normal()
    x[17, 1], x[400, 1], x[30, 3] = float("nan"), float("nan"), float("inf")
    finding = findings(about(x))["missing-values"]
    assert finding.where.sample == 17
    assert any("17, 30, 400" in line for line in finding.evidence)


def test_a_clipped_column_has_no_code() -> None:
    assert findings(about(normal().clamp(-1.5, 1.5))) == {}


def second_task(batch: Any, *targets: str, used: tuple[str, ...] = ()) -> list[str]:
    gathered = Gathered()
    for target in targets:
        gathered.targets[target] = ("mse", None)
    gathered.used.update(used)
    gathered.take(batch, None)
    return list(findings(record(gathered)))


def test_gaps_in_what_comes_after_the_target_are_those_of_another_task() -> None:
    x, gaps = normal(), normal(1000, 1)[:, 0]
    gaps[::3] = float("nan")
    wide = normal(1000, 4)
    wide[::3] = float("nan")
    assert second_task([x, x[:, 0], gaps], "[1]") == []
    assert second_task([x, x[:, 0], gaps], "[1]", "[2]") == []
    assert second_task({"x": x, "label": x[:, 0], "label_b": gaps}, "['label']") == []
    assert second_task([x, x[:, 0], wide], "[1]", used=("[0]",)) == []
    assert second_task([x, x[:, 0], wide], "[1]") == ["missing-values"], "it may be a second input"
    assert second_task([x, x[:, 0], wide], "[1]", used=("[0]", "[2]")) == ["missing-values"]
    assert second_task({"x": x, "label": x[:, 0], "age": gaps}, "['label']") == ["missing-values"]
    assert second_task([gaps, x, x[:, 0]], "[2]") == ["missing-values"]
