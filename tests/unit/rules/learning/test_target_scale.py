"""Targets far larger than the outputs."""

from __future__ import annotations

import math

from tests.unit.rules.learning.trainings import found, head, loss, numbers
from unstuck.recorder.records.learning import Predictions
from unstuck.recorder.records.numerics import BadTensor, Birth
from unstuck.rules.learning import target_scale


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


def test_nan_that_came_from_elsewhere_is_not_of_the_scale() -> None:
    given = head("mse", target=numbers(33e3, 57e3, 45e3, 9e3), prediction=Predictions(mean=4.0, sd=1.0))
    broken = loss(80.4, 80.5, count=3, nonfinite=100, nonfinite_step=3)
    birth = Birth(value=math.nan, step=3, site=broken.site, before=3, outside=[BadTensor(shape=[64, 48], nan=48)])
    assert found(target_scale.RULE, given, losses=[broken], births=[birth]) == []
