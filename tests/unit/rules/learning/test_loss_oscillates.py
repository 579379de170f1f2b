"""Updates that undo each other."""

from __future__ import annotations

from tests.unit.rules.learning.trainings import found, loss, optimizer
from unstuck.recorder.records.learning import Loss
from unstuck.rules.learning import loss_oscillates


def swinging(level: float = 1.2) -> Loss:
    values = [level + (0.5 if n % 2 else -0.4) for n in range(200)]
    return loss(1.5, level, first=values[:32], recent=values[-32:])


def test_updates_that_undo_each_other() -> None:
    back = optimizer(2.0, cosines=[-0.7] * 48)
    (finding,) = found(loss_oscillates.RULE, optimizers=[back], losses=[swinging()])
    assert "-0.70" in finding.evidence[0]
    assert found(loss_oscillates.RULE, optimizers=[optimizer()], losses=[swinging()]) == [], "noise of batches"
    assert found(loss_oscillates.RULE, optimizers=[back], losses=[loss(9.0, 1.0)]) == [], "it came down"
    two = [back, optimizer(number=1)]
    assert found(loss_oscillates.RULE, optimizers=two, losses=[swinging()]) == [], "a GAN"
