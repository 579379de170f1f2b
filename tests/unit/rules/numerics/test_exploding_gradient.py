"""Gradients that ruin the weights."""

from __future__ import annotations

from typing import Any

from tests.unit.rules.numerics.trainings import (
    birth,
    broken_loss,
    found,
    operation,
    parameter,
)
from unstuck.recorder.records.numerics import (
    GrownWeight,
)
from unstuck.rules.numerics import (
    exploding_gradient,
    nonfinite_born,
)


def exploding(grad: float) -> dict[str, Any]:
    weight = parameter("model.rnn.weight_hh_l0", grad, weights=[7.0], grads=[(0, grad)], moves=[(0, 360.0)])
    grown = [GrownWeight(name="model.rnn.weight_hh_l0", before=7.0, now=364.0)]
    bad = operation("result", made=False, operation="relu")
    return {
        "losses": [broken_loss(1)],
        "parameters": [weight],
        "births": [birth(weights=grown, operations=[bad], step=1)],
    }


def test_gradients_beyond_what_loss_and_weight_explain_explode() -> None:
    (finding,) = found(exploding_gradient.RULE, **exploding(18_000.0))
    assert "weight_hh_l0" in finding.title
    assert finding.where.line == 30
    assert not found(nonfinite_born.RULE, **exploding(18_000.0))


def test_a_rate_that_is_too_high_is_no_exploding_gradient() -> None:
    assert not found(exploding_gradient.RULE, **exploding(1.0))
    assert not found(nonfinite_born.RULE, **exploding(1.0))


def test_a_steep_start_that_nothing_comes_of_is_silent() -> None:
    weight = parameter("model.rnn.weight_hh_l0", 18_000.0)
    assert not found(exploding_gradient.RULE, parameters=[weight])
