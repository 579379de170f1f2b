"""Weight decay stronger than the gradients."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from operator import mul

from tests.unit.rules.learning.trainings import found, loss, optimizer, weight
from unstuck.recorder.records.learning import Parameter
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


def _matrices(*shares: float, fading: float = 1.0) -> list[Parameter]:
    """Weights of which each of the first steps takes a share."""
    made = []
    for share in shares:
        norms = list(accumulate([5.0, *(1 - share * fading**n for n in range(39))], mul))
        made.append(weight(0.05, weights=norms, moves=[(n, 1.1 * share * norm) for n, norm in enumerate(norms)]))
    return made


def test_decay_of_an_optimizer_that_names_none() -> None:
    rule = weight_decay_dominates.RULE
    own = [optimizer(kind="", steps=900, settings={}, lrs=[])]
    (finding,) = found(rule, optimizers=own, parameters=_matrices(0.05, 0.05, 0.051))
    assert finding.title.startswith("Each step takes 5.0% off every weight")
    assert found(rule, optimizers=own, parameters=_matrices(0.05, 0.05)) == [], "two may be alike by chance"
    assert found(rule, optimizers=own, parameters=_matrices(0.05, 0.03, 0.04)) == [], "their gradients do it"
    assert found(rule, optimizers=own, parameters=_matrices(0.09, 0.09, 0.09, fading=0.9)) == [], "ever less"
    assert found(rule, optimizers=own, parameters=_matrices(1e-3, 1e-3, 1e-3)) == [], "a usual decay"
    assert found(rule, optimizers=own, parameters=_matrices(0.05, 0.05, 0.05), losses=[loss(2.3, 0.8)]) == []
    brief = [optimizer(kind="", steps=100, settings={}, lrs=[])]
    assert found(rule, optimizers=brief, parameters=_matrices(0.05, 0.05, 0.05)) == [], "too early to tell"
    across = [replace(each, moves=[(n, 1.0) for n in range(40)]) for each in _matrices(0.05, 0.05, 0.05)]
    assert found(rule, optimizers=own, parameters=across) == [], "a step does something else"
