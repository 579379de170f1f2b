"""Steps larger than the weights."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.learning.trainings import classes, found, head, loss, optimizer, weight
from unstuck.recorder.records.learning import Parameter
from unstuck.rules.learning import learning_rate_too_high
from unstuck.serial import from_plain, to_plain


def test_steps_larger_than_the_weights() -> None:
    rule = learning_rate_too_high.RULE
    (finding,) = found(rule, parameters=[weight(14.0)], losses=[loss(2.1, 250.0)])
    assert "model.0.weight" in finding.title
    assert finding.where.line == 12
    broken = loss(2.1, 2.1, count=6, nonfinite=5, nonfinite_step=6)
    assert found(rule, parameters=[weight(14.0)], losses=[broken])
    stuck = head("cross_entropy", target=classes(0.12, 10, constant=2.3))
    assert found(rule, parameters=[weight(3.0)], heads=[stuck])


def test_numbers_that_broke_come_as_words_from_a_saved_case() -> None:
    broken = loss(2.1, 2.1, count=3, nonfinite=5, nonfinite_step=3)
    words = {"moves": [[0, 70.0], [1, "inf"], [2, "nan"]], "weights": [5.0, 75.0, "inf"]}
    thrown = from_plain(Parameter, {**to_plain(weight(14.0)), **words})
    (finding,) = found(learning_rate_too_high.RULE, parameters=[thrown], losses=[broken])
    assert "14 times" in finding.title


def test_large_steps_that_do_no_harm() -> None:
    rule = learning_rate_too_high.RULE
    assert found(rule, parameters=[weight(14.0)], losses=[loss(2.1, 0.1)]) == [], "it learns"
    assert found(rule, parameters=[weight(14.0, size=1e-4)], losses=[loss(2.1, 9.0)]) == [], "began at zero"
    assert found(rule, parameters=[weight(14.0, shape=[512])], losses=[loss(2.1, 9.0)]) == [], "gains and biases"
    assert found(rule, parameters=[weight(1e-3)], losses=[loss(2.1, 9.0)]) == []
    rewards = loss(-1.0, 40.0)
    assert found(rule, parameters=[weight(14.0)], losses=[rewards], heads=[]) == [], "reinforcement learning"


def test_a_large_share_of_the_weight_needs_a_rate_that_explains_it() -> None:
    rule, worse = learning_rate_too_high.RULE, [loss(0.3, 0.9)]
    assert found(rule, parameters=[weight(0.2)], losses=worse)
    unknown = replace(optimizer(), lrs=[])
    assert found(rule, parameters=[weight(0.2)], losses=worse, optimizers=[unknown]) == [], "of several threads, say"
    assert found(rule, parameters=[weight(14.0)], losses=worse, optimizers=[unknown])
