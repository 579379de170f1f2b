"""A softmax or sigmoid before a loss that applies its own."""

from __future__ import annotations

import pytest

from tests.unit.rules.learning.trainings import found, head
from unstuck.recorder.records.learning import LossOp
from unstuck.rules.learning import activation_applied_twice


@pytest.mark.parametrize(
    ("op", "after", "floor"),
    [("cross_entropy", "softmax", "1.46"), ("log_softmax", "sigmoid", "1.46"), ("bce_logits", "sigmoid", "0.313")],
)
def test_an_activation_in_front_of_a_loss_that_has_its_own(op: LossOp, after: str, floor: str) -> None:
    (finding,) = found(activation_applied_twice.RULE, head(op, after=after, after_dim=1, after_shape=[32, 10]))
    assert finding.severity == "error"
    assert finding.where.line == 28
    assert floor in finding.evidence[1]


@pytest.mark.parametrize(("op", "after"), [("cross_entropy", ""), ("cross_entropy", "log_softmax"), ("bce", "sigmoid")])
def test_nothing_is_applied_twice(op: LossOp, after: str) -> None:
    assert found(activation_applied_twice.RULE, head(op, after=after)) == []
    assert found(activation_applied_twice.RULE, head("cross_entropy", after="softmax", times=1)) == []
