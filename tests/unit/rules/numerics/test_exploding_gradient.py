"""Gradients that ruin the weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.rules.numerics.trainings import (
    BROKEN,
    birth,
    broken_loss,
    case,
    found,
    loss,
    operation,
    parameter,
    tensor,
)
from unstuck.recorder.records.learning import LossHead, Targets
from unstuck.recorder.records.numerics import ComputedValue, GrownWeight
from unstuck.rules.diagnose import diagnose
from unstuck.rules.numerics import RULES, exploding_gradient, nonfinite_born


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
    (shown,) = diagnose(case(**exploding(18_000.0)), RULES).findings
    assert shown.rule == "exploding-gradient"


def test_a_rate_that_is_too_high_is_no_exploding_gradient() -> None:
    assert not found(exploding_gradient.RULE, **exploding(1.0))
    assert not found(nonfinite_born.RULE, **exploding(1.0))


def test_outputs_far_too_large_before_any_update() -> None:
    """The loss is as large as the gradient: their product shows nothing."""
    known = Targets(count=640, constant=1.6)
    head = LossHead(op="cross_entropy", times=9, called=broken_loss().site, bare=True, target=known)
    weight = parameter("mix", 1e6, weights=[7.0], grads=[(0, 1e6)], moves=[(0, 1e4)])
    nan = birth(weights=[GrownWeight(name="mix", before=7.0, now=1e4)], step=1)

    def rules(first: float, **more: Any) -> list[str]:
        broken = replace(broken_loss(1), first=[first])
        return [
            each.rule for each in diagnose(case(losses=[broken], parameters=[weight], births=[nan], **more)).findings
        ]

    assert rules(2.7e5, heads=[head]) == ["exploding-gradient"]
    assert rules(2.7e5) == ["nonfinite-born"], "what a constant prediction gives is not known"
    assert rules(2.7e5, heads=[replace(head, target=replace(known, constant=2e4))]) == ["nonfinite-born"]
    moved = replace(weight, moves=[(0, 30.0)])
    assert not found(
        exploding_gradient.RULE, losses=[replace(broken_loss(1), first=[2.7e5])], parameters=[moved], births=[nan],
        heads=[head],
    )  # fmt: skip


def test_a_steep_start_that_nothing_comes_of_is_silent() -> None:
    weight = parameter("model.rnn.weight_hh_l0", 18_000.0)
    assert not found(exploding_gradient.RULE, parameters=[weight])


def test_a_gradient_that_jumps_late_and_takes_the_loss_with_it() -> None:
    """Nobody saw an operation do it, so that it is the cause of the NaN, too."""
    norms = [(n * 5, 20.0 if n == 39 else 0.01 + 0.001 * (n % 3)) for n in range(40)]
    weight = parameter("model.0.weight", 0.01, grads=norms)
    nan = birth(step=200, before=200, broken_parameters=BROKEN)
    broken = loss(count=200, nonfinite=50, nonfinite_step=200)
    (finding,) = diagnose(case(parameters=[weight], losses=[broken], births=[nan]), RULES).findings
    assert finding.title == "The gradient explodes at step 195: 1,818 times its usual norm, and the loss is NaN"
    assert finding.consequences[0].startswith("nonfinite-born: The gradient of the step before 200 was NaN")
    higher = loss(recent=[40.0] * 8)
    (finding,) = found(exploding_gradient.RULE, parameters=[weight], losses=[higher])
    assert "the loss is 40 times larger" in finding.title
    assert not found(exploding_gradient.RULE, parameters=[weight], losses=[loss()]), "the loss is fine"


def test_weights_that_grew_between_two_readings() -> None:
    grown = [GrownWeight(name="model.0.weight", before=1.0, now=50.0)]
    overflow = operation("exp-overflow", operation="exp")
    nan = birth(step=30, weights=grown, operations=[overflow])
    weight = parameter("model.0.weight", 0.1)
    (finding,) = found(exploding_gradient.RULE, parameters=[weight], losses=[broken_loss()], births=[nan])
    assert finding.title == "An update ruins the weights, and the loss is NaN"
    assert "the norm of model.0.weight grew from 1 to 50" in finding.evidence
    assert [place.line for place in finding.also] == [12], "the operation that overflowed"


def test_not_where_the_input_is_nan_before_any_weight_is() -> None:
    grown = [GrownWeight(name="model.0.weight", before=1.0, now=5000.0)]
    given = tensor(operation="addmm", role="mat1", shape=[8, 4], rows=[0, 1], bad_rows=8)
    made = ComputedValue(operation="sqrt", why="spread-as-difference", plain=True, site=("train.py", 12, "forward"))
    weight = parameter("model.0.weight", 0.1)

    def rules(computed: ComputedValue) -> list[str]:
        nan = birth(step=30, weights=grown, outside=[given], computed=computed)
        given_so = case(parameters=[weight], losses=[broken_loss()], births=[nan])
        return [finding.rule for finding in diagnose(given_so, RULES).findings]

    assert rules(made) == ["nonfinite-born"]
    assert rules(replace(made, plain=False)) == ["exploding-gradient"], "a weight may be in it"
