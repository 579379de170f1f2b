"""Activations that are flat."""

from __future__ import annotations

from typing import Any

from tests.unit.rules.learning.ownership import activation, case, said
from unstuck.rules.numerics import saturated_units


def test_saturated_from_the_start_and_no_gate() -> None:
    flat: dict[str, Any] = {"kind": "tanh", "early_saturated": 0.8, "late_saturated": 0.8, "saturated": 0.8}
    assert said(saturated_units.RULE, case(activations=[activation(**flat)]))
    assert not said(saturated_units.RULE, case(activations=[activation(**flat, gated=True)]))
    assert not said(saturated_units.RULE, case(activations=[activation(**{**flat, "early_saturated": 0.1})]))
