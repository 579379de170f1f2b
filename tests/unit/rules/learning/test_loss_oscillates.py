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


def test_few_pairs_are_enough_where_most_point_back() -> None:
    def told(cosines: list[float]) -> bool:
        return bool(found(loss_oscillates.RULE, optimizers=[optimizer(2.0, cosines=cosines)], losses=[swinging()]))

    clear = [0.05, -0.7, -0.72, -0.34, -0.52, -0.88, -0.96, -0.83]
    assert told(clear)
    assert not told(clear[:7])
    assert not told([0.1, 0.0, -0.1, *clear[1:6]]), "three of eight do not"
