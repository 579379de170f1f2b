"""Targets that do not belong to their inputs."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.learning.trainings import case, head, loss, numbers
from unstuck.model import Finding, Question
from unstuck.recorder.records.data import DataSeen, LabelCounts, LoaderData, PairsSeen
from unstuck.rules.learning.labels_unrelated_to_inputs import RULE


def said(again: int, changed: int, level: float = 1.0, labels: LabelCounts | None = None) -> list[Finding | Question]:
    pairs = PairsSeen(again=again, changed=changed, example=(1, 2.0, 7, 3.0))
    seen = DataSeen(pid=7, loaders=[LoaderData(trains=True, pairs=pairs, labels=labels)])
    given = head("mse", target=numbers(-2, 2, 0, 1))
    return list(RULE.decide(replace(case(given, losses=[loss(level, level)]), data=(seen,))))


def test_the_same_input_with_another_target() -> None:
    (finding,) = said(100, 98)
    assert isinstance(finding, Finding)
    assert "98 of them" in finding.evidence[0]
    two = LabelCounts(classes=2, counts=[(0.0, 500), (1.0, 500)], samples=1000)
    (finding,) = said(100, 48, labels=two)
    assert isinstance(finding, Finding), "every second one has the other label by chance"


def test_only_an_experiment_tells() -> None:
    assert all(isinstance(result, Question) for result in said(100, 2) + said(9, 9))
    assert said(100, 98, level=0.2) == [], "it learns"
