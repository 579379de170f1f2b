"""One class for everything."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.learning.trainings import classes, found, head, loss
from unstuck.recorder.records.learning import Predictions
from unstuck.rules.learning import predicts_one_class


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
