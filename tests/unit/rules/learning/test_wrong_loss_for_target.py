"""Loss functions that do not fit their targets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.rules.learning.trainings import found, head, loss, numbers
from unstuck.recorder.records.learning import Predictions, Range, Targets
from unstuck.rules.learning import wrong_loss_for_target


def rows(low: float, high: float, mean: float, floor: float, *, negative: bool = False) -> Targets:
    sums = Range(min=low, max=high, mean=mean)
    return Targets(min=0.0, max=high, rows=sums, negative=negative, floor=floor, shape=[100, 2], count=3200)


def test_targets_that_are_no_probabilities_set_a_floor() -> None:
    given = head("log_softmax", target=rows(110, 1876, 1000, 568.2))
    (finding,) = found(wrong_loss_for_target.RULE, given, losses=[loss(697, 697)])
    assert "110" in finding.title
    assert "568.2" in finding.evidence[1]
    assert "697" in finding.evidence[1]


@pytest.mark.parametrize(
    "target",
    [rows(1, 1, 1, 0.6), rows(0.0, 5.0, 2.5, 0.0), rows(0, 1, 0.99, 0.3)],
    ids=["distillation", "weighted one-hot", "some rows left out"],
)
def test_probabilities_and_weights_are_fine(target: Targets) -> None:
    assert found(wrong_loss_for_target.RULE, head("log_softmax", target=target)) == []


def test_other_losses_that_do_not_fit() -> None:
    rule = wrong_loss_for_target.RULE
    raw = Predictions(min=-3.0, max=4.0, rows=Range(min=2.0, max=60.0))
    assert "nll_loss" in found(rule, head("nll", prediction=raw))[0].title
    assert found(rule, head("nll", after="log", prediction=raw)) == []
    assert "0 to 255" in found(rule, head("bce_logits", target=numbers(0, 255, 90, 100)))[0].title
    assert found(rule, head("bce_logits", target=numbers(0, 1, 0.4, 0.5))) == []
    assert "over a single class" in found(rule, head("log_softmax", shape=[32, 1]))[0].title
    assert "below 0" in found(rule, head("log_softmax", target=rows(-1, 1, 0, 0, negative=True)))[0].title


def test_a_minus_in_front() -> None:
    falling = [loss(-1.0, -80.0)]
    (finding,) = found(wrong_loss_for_target.RULE, head("cross_entropy"), losses=falling)
    assert "minus" in finding.title
    assert found(wrong_loss_for_target.RULE, head("cross_entropy", signed=False), losses=falling) == []
    other = loss(site=("/project/train.py", 40, "main"))
    assert found(wrong_loss_for_target.RULE, head("bce_logits"), losses=[*falling, other]) == [], "a GAN"


def test_class_numbers_are_a_warning_only_where_the_script_has_them_as_integers() -> None:
    values = numbers(0, 4, 2, 1.4, integer=True, values=[0.0, 1.0, 2.0, 3.0, 4.0])
    severities = [
        [
            f.severity
            for f in found(
                wrong_loss_for_target.RULE, head("mse", target=replace(values, ids=ids)), losses=[loss(2, end)]
            )
        ]
        for ids, end in (("y", 1.0), (None, 1.0), ("y", 0.02))
    ]
    assert severities == [["warning"], ["info"], []]
    stars = replace(values, values=[1.0, 2.0, 3.0, 4.0, 5.0], ids="y")
    assert found(wrong_loss_for_target.RULE, head("mse", target=stars)) == []
