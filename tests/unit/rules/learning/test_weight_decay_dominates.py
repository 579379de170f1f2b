"""Weight decay stronger than the gradients."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.learning.trainings import found, loss, optimizer, weight
from unstuck.rules.learning import weight_decay_dominates


def test_decay_that_leaves_nothing() -> None:
    rule = weight_decay_dominates.RULE
    shrinking = weight(0.05, weights=[5.0 * 0.9**n for n in range(40)])
    heavy = optimizer(settings={"lr": 0.1, "weight_decay": 0.5})
    (finding,) = found(rule, optimizers=[heavy], parameters=[shrinking])
    assert "0.5" in finding.title
    assert found(rule, optimizers=[heavy], parameters=[shrinking], losses=[loss(2.3, 0.4)]) == [], "it learns"
    assert found(rule, optimizers=[heavy], parameters=[weight(1e-3)]) == [], "nothing shrinks"
    light = optimizer(settings={"lr": 0.1, "weight_decay": 5e-4})
    assert found(rule, optimizers=[light], parameters=[shrinking]) == []
    apart = optimizer(0.01, "AdamW", settings={"lr": 0.01, "weight_decay": 10.0})
    moved = [(n, 0.1 * 5.0 * 0.9**n) for n in range(40)]
    assert found(rule, optimizers=[apart], parameters=[replace(shrinking, moves=moved)])
