"""Gradients that add up."""

from __future__ import annotations

import pytest

from tests.unit.rules.learning.ownership import built, case, said
from unstuck.recorder.records.learning import BuiltOptimizer
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
