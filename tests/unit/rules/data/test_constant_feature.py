"""constant-feature, on Cases made by hand."""

from __future__ import annotations

from tests.unit.rules.data.tables import about, findings, normal


def test_constant_columns() -> None:
    x = normal()
    x[:, 3] = 4.5
    assert findings(about(x))["constant-feature"].title.startswith("Column 3")
    x[:, 3] = 0.0
    assert findings(about(x)) == {}, "of a sample only: a rare 1 may come"
    assert list(findings(about(x), "scan")) == ["constant-feature"]
    x[:, 3] = float("nan")
    assert "NaN" in findings(about(x))["constant-feature"].title
