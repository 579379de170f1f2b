"""Runs that ended too early."""

from __future__ import annotations

from tests.unit.rules.learning.trainings import found, loss
from unstuck.recorder.records.learning import Loss
from unstuck.rules.learning import still_improving


def falling(pace: float, count: int = 200) -> Loss:
    values = [40.0 * pace**n + 0.01 * (n % 3) for n in range(count)]
    return loss(first=values[:32], points=list(enumerate(values)), last=values[-1])


def test_a_run_that_ended_while_it_was_falling() -> None:
    (finding,) = found(still_improving.RULE, losses=[falling(0.99)])
    assert finding.severity == "info"
    assert "70 more steps" in finding.evidence[1]
    assert found(still_improving.RULE, outcome="running", losses=[falling(0.99)]) == []
    assert found(still_improving.RULE, losses=[falling(0.9)]) == [], "it has arrived"
    assert found(still_improving.RULE, losses=[loss(2.3, 1.0)]) == [], "it has levelled off"
