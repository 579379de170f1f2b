"""A training that learns is left alone by the rules on ownership."""

from __future__ import annotations

import pytest

from tests.unit.rules.learning.ownership import case, parameter, said
from unstuck.model import Outcome
from unstuck.rules.learning import (
    eval_mode_while_training,
    frozen_parameters,
    gradients_never_cleared,
    graph_cut,
    optimizer_never_steps,
    parameters_not_in_optimizer,
)
from unstuck.rules.numerics import dead_units, saturated_units, symmetric_weights
from unstuck.rules.rule import Rule

RULES = [
    module.RULE
    for module in (
        dead_units,
        eval_mode_while_training,
        frozen_parameters,
        gradients_never_cleared,
        graph_cut,
        optimizer_never_steps,
        parameters_not_in_optimizer,
        saturated_units,
        symmetric_weights,
    )
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("outcome", ["running", "finished"])
def test_a_training_that_learns_is_left_alone(rule: Rule, outcome: Outcome) -> None:
    assert not said(rule, case(parameter(), parameter("model.fc.bias", (8,)), outcome=outcome))
