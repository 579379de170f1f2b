"""Backward passes without a step."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.rules.learning.ownership import built, case, parameter, said
from unstuck.recorder.records.learning import LostUpdate, Optimizer, Parameter
from unstuck.recorder.records.numerics import Scaler
from unstuck.rules.learning import optimizer_never_steps


def still(**more: Any) -> Parameter:
    return parameter(owner=None, moved=False, **more)


def test_backward_without_a_step() -> None:
    (finding,) = said(optimizer_never_steps.RULE, case(still(), built=[built(steps=0, clears=300)]))
    assert finding.where.line == 30
    assert "0 steps of the Adam built at train.py:20" in finding.evidence[0]


@pytest.mark.parametrize(
    ("parameters", "more"),
    [
        ([parameter(owner=None)], {"built": [built(steps=0)]}),  # written by hand
        ([still()], {"built": [built(steps=0, clears=0)]}),  # may be accumulating
        ([still()], {"built": [built(steps=0)], "scaler": Scaler(updates=300)}),  # skipped by the scaler
        ([still()], {"built": [built(steps=0), built(number=1)]}),  # another one steps
    ],
)
def test_no_step_yet(parameters: list[Parameter], more: dict[str, Any]) -> None:
    assert not said(optimizer_never_steps.RULE, case(*parameters, **more))


def test_gradients_cleared_before_the_step() -> None:
    (finding,) = said(optimizer_never_steps.RULE, case(parameter(moved=False, none=40)))
    assert "gone when the optimizer steps" in finding.title


LOST = LostUpdate(site=("train.py", 33, "main"), how="rebound")


def test_an_update_that_reaches_no_weight() -> None:
    more: dict[str, Any] = {"built": [], "steps": 0, "backwards": 0, "lost_update": LOST}
    (finding,) = said(optimizer_never_steps.RULE, case(still(held=None), **more))
    assert (finding.severity, finding.where.line) == ("error", 33)
    assert "300 losses at train.py:30" in finding.evidence[0]


USED_UP = LostUpdate(site=("train.py", 9, "Own.__init__"), how="used_up", name=".params", loop=14)


@pytest.mark.parametrize(("made", "moves"), [(0, False), (1, True)])
def test_an_update_over_an_iterator_at_its_end(made: int, moves: bool) -> None:
    """Its first loop may have been an update; inputs that want a gradient come and go."""
    optimizers = [Optimizer(steps=1)] if made else []
    more: dict[str, Any] = {"built": [], "steps": made, "optimizers": optimizers, "passing": 9, "lost_update": USED_UP}
    (finding,) = said(optimizer_never_steps.RULE, case(parameter(owner=None, held=None, moved=moves), **more))
    assert finding.where.line == 9
    assert "line 14" in finding.evidence[1]
    assert not said(optimizer_never_steps.RULE, case(parameter(owner=None), **{**more, "steps": 2}))
    assert not said(optimizer_never_steps.RULE, case(still(held=None), **{**more, "built": [built()]}))


@pytest.mark.parametrize(
    "more",
    [
        {"parameters": [parameter(owner=None)]},  # it moves
        {"steps": 40},
        {"passing": 12},  # inputs get gradients, or weights are made anew
        {"optimizers": [Optimizer(steps=40)]},  # written by hand, elsewhere
        {"lost_update": None},  # gradients that are only looked at
        {"losses": [], "backwards": 12},
        {"built": [built()]},
    ],
)
def test_weights_that_nobody_means_to_change(more: dict[str, Any]) -> None:
    known: dict[str, Any] = {"built": [], "steps": 0, "lost_update": LOST, "parameters": [still(held=None)], **more}
    assert not said(optimizer_never_steps.RULE, case(**known))
