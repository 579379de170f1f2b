"""ReLU units that output 0 for every sample."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.learning.ownership import activation, case, parameter, said
from unstuck.rules.numerics import dead_units


def test_dead_units_short_of_a_whole_layer_are_a_warning() -> None:
    (whole,) = said(dead_units.RULE, case(activations=[activation(late_dead=40)]))
    (most,) = said(dead_units.RULE, case(activations=[activation(late_dead=38)]))
    assert (whole.severity, most.severity) == ("error", "warning")
    assert not said(dead_units.RULE, case(activations=[activation(late_dead=30), activation(late_batches=10)]))


def test_a_narrow_layer_that_is_wholly_dead() -> None:
    narrow = activation(units=2, late_dead=2, dead=2, late_batches=12, name="model.0")
    behind = parameter(name="model.0.weight", grads=[(n, 0.0) for n in range(40)])
    after = parameter(name="model.2.weight", grads=[(n, 0.3) for n in range(40)])
    (finding,) = said(dead_units.RULE, case(behind, after, activations=[narrow]))
    assert finding.severity == "error"
    assert "negative bias" in finding.fix.text
    still = replace(after, grads=[(n, 0.0) for n in range(40)])
    assert not said(dead_units.RULE, case(behind, still, activations=[narrow])), "a hinge that is met everywhere"
    assert not said(dead_units.RULE, case(behind, after, activations=[replace(narrow, late_dead=1)]))
