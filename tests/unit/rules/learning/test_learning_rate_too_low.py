"""Steps too small to get anywhere."""

from __future__ import annotations

from typing import Any

from tests.unit.rules.learning.trainings import found, loss, optimizer, weight
from unstuck.rules.learning import learning_rate_too_low


def test_steps_too_small_to_see() -> None:
    rule = learning_rate_too_low.RULE
    slow: dict[str, Any] = {"optimizers": [optimizer(1e-6)], "parameters": [weight(8e-8, grad=0.4)]}
    (finding,) = found(rule, **slow)
    assert "8.0e-08" in finding.title
    assert found(rule, outcome="running", **slow)
    assert found(rule, **{**slow, "losses": [loss(2.3, 0.5)]}) == [], "it learns"
    assert found(rule, **{**slow, "parameters": [weight(8e-8, grad=1e-6)]}) == [], "the gradient is what is small"
    warming = optimizer(lrs=[(0, 1e-8), (50, 5e-7), (150, 1e-6)])
    assert found(rule, outcome="running", **{**slow, "optimizers": [warming]}) == [], "the rate may still come"
    assert found(rule, outcome="interrupted", **{**slow, "optimizers": [warming]}) == []
    (finding,) = found(rule, **{**slow, "optimizers": [warming]})
    assert "warm-up" in "".join(finding.evidence), "the run is over, and the warm-up was not"
    assert found(rule, optimizers=[optimizer(2e-5, "AdamW")], parameters=[weight(1e-3)]) == [], "fine-tuning"
