"""Backward passes without a step."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.rules.learning.ownership import built, case, parameter, said
from unstuck.recorder.records.learning import Parameter
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
