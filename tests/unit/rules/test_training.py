"""Plain questions about a training."""

from __future__ import annotations

from tests.unit.rules.learning.trainings import case, head, loss, numbers
from unstuck.recorder.records.learning import Loss
from unstuck.rules.training import worse_than_constant


def thrown(count: int) -> Loss:
    """To a million at once, and down again, to far above where it began."""
    values = [40.0, 1e6, *(1e6 / (2 + n) for n in range(count - 2))]
    return loss(40.0, values[-1], count=count, first=values[:32], points=list(enumerate(values)), recent=values[-32:])


def test_thrown_up_and_coming_down_it_is_judged_after_some_steps_while_it_runs() -> None:
    given = head("smooth_l1", target=numbers(-4, 4, 0, 1.3, constant=None))
    assert not list(worse_than_constant(case(given, losses=[thrown(60)], outcome="running")))
    assert list(worse_than_constant(case(given, losses=[thrown(300)], outcome="running")))
    assert not list(worse_than_constant(case(given, losses=[loss(900.0, 850.0)], outcome="running"))), "it comes down"
