"""Rules about loss functions and what they are given, on Cases written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unstuck.model import Case, Finding, Outcome
from unstuck.recorder.records.learning import (
    Learning,
    Loss,
    LossHead,
    LossOp,
    OutOfReach,
    Predictions,
    Range,
    Targets,
)
from unstuck.rules.diagnose import diagnose
from unstuck.rules.learning import (
    RULES,
    activation_applied_twice,
    loss_broadcasts,
    no_better_than_constant,
    output_range_excludes_targets,
    predicts_one_class,
    softmax_over_wrong_dim,
    target_scale,
    wrong_loss_for_target,
)
from unstuck.rules.rule import Rule

SITE = ("/project/train.py", 30, "main")
LINE = ("/project/train.py", 28, "main")


def loss(begin: float = 2.3, end: float = 2.3, count: int = 200, **more: Any) -> Loss:
    values = [begin + (end - begin) * min(1.0, n / (0.5 * count)) for n in range(count)]
    plain = {"site": SITE, "count": count, "first": values[:32], "points": list(enumerate(values)), "last": end}
    return Loss(**{**plain, "recent": values[-32:], **more})


def head(op: LossOp, **more: Any) -> LossHead:
    plain: dict[str, Any] = {"op": op, "times": 40, "site": LINE, "called": SITE, "shape": [32, 10], "dim": 1}
    return LossHead(**{**plain, "bare": True, "signed": True, **more})


def case(*heads: LossHead, outcome: Outcome = "finished", **more: Any) -> Case:
    plain: dict[str, Any] = {"steps": 200, "backwards": 200, "clears": 200, "losses": [loss()], "heads": list(heads)}
    return Case(root=7, outcome=outcome, learnings=(Learning(**{**plain, "pid": 7, **more}),))


def found(rule: Rule, *heads: LossHead, outcome: Outcome = "finished", **more: Any) -> list[Finding]:
    return [each for each in rule.decide(case(*heads, outcome=outcome, **more)) if isinstance(each, Finding)]


def numbers(low: float, high: float, mean: float, sd: float, **more: Any) -> Targets:
    plain = {"batches": 40, "count": 1280, "dtype": "float32", "shape": [32, 1], "integer": False}
    return Targets(**{**plain, "min": low, "max": high, "mean": mean, "sd": sd, "constant": sd**2, **more})


def classes(majority: float, count: int = 2, constant: float = 0.5) -> Targets:
    rest = (1 - majority) / (count - 1)
    return Targets(count=1280, classes=count, majority=majority, minority=rest, of=0, constant=constant)


# --- activation-applied-twice, softmax-over-wrong-dim --------------------------------------------------------


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


def test_a_softmax_over_the_batch_is_the_cause_of_both() -> None:
    twice = head("cross_entropy", after="softmax", after_dim=0, after_shape=[32, 10])
    (finding,) = diagnose(case(twice), RULES).findings
    assert finding.rule == "softmax-over-wrong-dim"
    assert finding.consequences[0].startswith("activation-applied-twice")
    rows = Predictions(rows=Range(min=0.1, max=0.4))
    assert found(softmax_over_wrong_dim.RULE, head("cross_entropy", dim=0, prediction=rows))
    assert found(softmax_over_wrong_dim.RULE, head("nll", after="log", prediction=rows))


def test_a_softmax_over_classes_or_between_samples_is_left_alone() -> None:
    one = Predictions(rows=Range(min=1.0, max=1.0))
    assert found(softmax_over_wrong_dim.RULE, head("cross_entropy", prediction=one)) == []
    assert found(softmax_over_wrong_dim.RULE, head("cross_entropy", shape=[10], dim=0, prediction=one)) == []
    square = head("mse", after="softmax", after_dim=0, after_shape=[32, 1])
    assert found(softmax_over_wrong_dim.RULE, square) == []


# --- loss-broadcasts -----------------------------------------------------------------------------------------


def test_a_column_against_a_row() -> None:
    target = numbers(-2, 2, 0, 1, shape=[32, 32], expanded=[1, 32])
    (finding,) = found(loss_broadcasts.RULE, head("mse", broadcast=([32, 1], [32, 32]), target=target))
    assert "[32, 1]" in finding.title
    assert "[32]" in finding.title
    assert "variance" in finding.evidence[1]
    assert found(loss_broadcasts.RULE, head("squared", broadcast=([32], [32, 32])))
    assert found(loss_broadcasts.RULE, head("mse", broadcast=([32, 1], [32, 3])))


def test_what_is_meant_to_broadcast() -> None:
    assert found(loss_broadcasts.RULE, head("squared", broadcast=([32, 1], [32, 3]))) == []
    assert found(loss_broadcasts.RULE, head("mse", broadcast=([1], [32]))) == []
    assert found(loss_broadcasts.RULE, head("mse", target=numbers(1, 1, 1, 0, expanded=[1]))) == []


# --- wrong-loss-for-target -----------------------------------------------------------------------------------


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


# --- target-scale, output-range-excludes-targets -------------------------------------------------------------


def test_large_targets_are_named_where_the_loss_does_not_get_there() -> None:
    given = head("mse", target=numbers(33e3, 57e3, 45e3, 9e3), prediction=Predictions(mean=4.0, sd=1.0))
    (finding,) = found(target_scale.RULE, given, losses=[loss(2.1e9, 2.0e9)])
    assert finding.severity == "warning"
    assert found(target_scale.RULE, given, losses=[loss(2.1e9, 1e6)]) == [], "it got there"
    assert found(target_scale.RULE, given, outcome="running", losses=[loss(2.1e9, 2.0e9)]) == [], "it may yet"
    broken = loss(2.1e9, 2.1e9, count=4, nonfinite=100, nonfinite_step=4)
    assert found(target_scale.RULE, given, losses=[broken])[0].severity == "error"
    assert found(target_scale.RULE, head("mse", target=numbers(-3, 3, 0, 1))) == []


def test_one_target_far_away_is_no_scale() -> None:
    outlier = head("mse", target=numbers(-0.45, 17608.0, 5.7, 254.0, count=20_000), prediction=Predictions(sd=135.0))
    assert found(target_scale.RULE, outlier, losses=[loss(7e4, 6.7e4)]) == []
    broad = head("mse", target=numbers(-900.0, 1100.0, 5.7, 254.0, count=20_000), prediction=Predictions(sd=1.0))
    assert found(target_scale.RULE, broad, losses=[loss(7e4, 6.7e4)])


def test_an_output_that_cannot_reach_its_targets() -> None:
    beyond = {"sigmoid": OutOfReach(share=0.9, floor=60.0), "relu": OutOfReach(share=0.01, floor=0.1)}
    target = numbers(-5, 20, 8, 6, beyond=beyond)
    (finding,) = found(output_range_excludes_targets.RULE, head("mse", after="sigmoid", target=target))
    assert "90%" in finding.title
    assert "60" in finding.evidence[1]
    assert found(output_range_excludes_targets.RULE, head("mse", after="relu", target=target)) == []
    assert found(output_range_excludes_targets.RULE, head("mse", target=target)) == []
    assert found(output_range_excludes_targets.RULE, head("bce_logits", after="relu"))
    one = head("mse", after="softmax", after_dim=1, after_shape=[32, 1])
    assert "always 1" in found(output_range_excludes_targets.RULE, one)[0].title


# --- predicts-one-class, no-better-than-constant -------------------------------------------------------------


def test_one_class_for_everything() -> None:
    given = Predictions(recent=8, samples=640, top=0, share=1.0)
    rare = head("cross_entropy", target=classes(0.97), prediction=given)
    assert [f.severity for f in found(predicts_one_class.RULE, rare, losses=[loss(0.7, 0.5)])] == ["warning"]
    assert found(predicts_one_class.RULE, rare, losses=[loss(0.7, 0.3)]) == [], "it ranks them"
    assert found(predicts_one_class.RULE, rare, losses=[loss(0.7, 0.5, count=50)]) == [], "early"
    even = head("cross_entropy", target=classes(0.5), prediction=given)
    assert found(predicts_one_class.RULE, even, losses=[loss(0.7, 0.5)]) == []
    early = head("cross_entropy", target=classes(0.97), prediction=replace(given, recent=1))
    assert found(predicts_one_class.RULE, early, losses=[loss(0.7, 0.5)]) == []


def test_the_last_resort_is_information_and_silent_beside_a_cause() -> None:
    stuck = head("cross_entropy", target=classes(0.26, 10, constant=2.3))
    (finding,) = diagnose(case(stuck), RULES).findings
    assert (finding.rule, finding.severity) == ("no-better-than-constant", "info")
    assert "checked and fine" in finding.evidence[1]
    (cause,) = diagnose(case(replace(stuck, after="softmax", after_dim=1, after_shape=[32, 10])), RULES).findings
    assert cause.rule == "activation-applied-twice"
    assert found(no_better_than_constant.RULE, stuck, losses=[loss(2.3, 1.9)]) == []
    assert found(no_better_than_constant.RULE, replace(stuck, bare=False)) == []
