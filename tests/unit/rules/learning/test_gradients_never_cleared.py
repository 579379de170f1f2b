"""Gradients that add up."""

from __future__ import annotations

import pytest

from tests.unit.rules.learning.ownership import built, case, said
from unstuck.recorder.records.learning import BuiltOptimizer, Optimizer
from unstuck.rules.learning import gradients_never_cleared


def test_gradients_never_cleared_names_the_backward_line() -> None:
    (finding,) = said(gradients_never_cleared.RULE, case(built=[built(stale=60, clears=0)]))
    assert (finding.severity, finding.where.line) == ("error", 30)
    assert "60 of 60" in finding.evidence[0]


def test_gradients_cleared_once_an_epoch() -> None:
    (finding,) = said(gradients_never_cleared.RULE, case(built=[built(stale=60, clears=5)]))
    assert "once in 60 steps" in finding.title


@pytest.mark.parametrize(
    "optimizer",
    [
        built(stale=30, clears=0),  # half of the time: two nets that share a backward pass
        built(stale=60, clears=300),
        built(stale=60, clears=0, kind="LBFGS"),
        built(stale=3, checked=3, clears=0),
    ],
)
def test_gradients_that_are_cleared_some_way(optimizer: BuiltOptimizer) -> None:
    assert not said(gradients_never_cleared.RULE, case(built=[optimizer]))


def test_updates_written_by_hand() -> None:
    by_hand = Optimizer(steps=300, stale=60, checked=62)
    (finding,) = said(gradients_never_cleared.RULE, case(built=[], optimizers=[by_hand]))
    assert (finding.severity, finding.where.line) == ("error", 30)
    assert "p.grad = None" in finding.fix.text


@pytest.mark.parametrize(
    "optimizer",
    [
        Optimizer(steps=300, stale=31, checked=62),
        Optimizer(steps=300, stale=5, checked=5),
        Optimizer(kind="SGD", steps=300, stale=62, checked=62),  # judged as it was built, with its calls of zero_grad
    ],
)
def test_updates_that_clear(optimizer: Optimizer) -> None:
    assert not said(gradients_never_cleared.RULE, case(built=[], optimizers=[optimizer]))
