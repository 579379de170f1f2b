"""Layers that no optimizer has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.rules.learning.ownership import built, case, parameter, said
from unstuck.recorder.records.learning import KeptInList, Parameter
from unstuck.rules.learning import parameters_not_in_optimizer


def unowned(name: str = "model.hidden[0].weight", **more: Any) -> Parameter:
    lost: dict[str, Any] = {"owner": None, "held": None, "moved": False, "seen": 0, "grads": [], "fresh": True}
    return parameter(name, **{**lost, **more})


def test_layers_in_a_list_are_named_with_the_line_of_the_list() -> None:
    kept = KeptInList(module="model.hidden[0]", holder="model", kind="MLP", attribute="hidden", container="list")
    plain_list = case(parameter(), unowned(), kept_in=[replace(kept, site=("net.py", 11, "MLP.__init__"))])
    (finding,) = said(parameters_not_in_optimizer.RULE, plain_list)
    assert (finding.severity, finding.where.file, finding.where.line) == ("error", "net.py", 11)
    assert "ModuleList" in finding.fix.text


def test_an_optimizer_of_another_model() -> None:
    (finding,) = said(parameters_not_in_optimizer.RULE, case(unowned(), built=[built(in_graph=0)]))
    assert finding.where.line == 20
    assert "another model" in finding.evidence[2]


@pytest.mark.parametrize(
    "lost",
    [
        unowned(fresh=False),  # trained or loaded before: a frozen body
        unowned(moved=True),  # moved by hand
        unowned(held=1),  # in an optimizer that has not stepped yet
        unowned(is_parameter=False),  # an input that wants a gradient
        unowned(in_graph=1),  # made anew each step
        unowned(trainable=False),
    ],
)
def test_left_out_for_a_reason(lost: Parameter) -> None:
    assert not said(parameters_not_in_optimizer.RULE, case(parameter(), lost, outcome="finished"))


def test_what_was_left_out_may_still_be_added() -> None:
    early = case(parameter(), unowned(), built=[built(steps=20)])
    assert not said(parameters_not_in_optimizer.RULE, early)
    assert said(parameters_not_in_optimizer.RULE, case(parameter(), unowned()))


def released(**more: Any) -> Parameter:
    return unowned("model.body.weight", fresh=False, moved=True, **{"late": 300, **more})


def test_layers_released_for_a_second_stage() -> None:
    head = parameter(grads=[(40, 0.5)])
    (finding,) = said(parameters_not_in_optimizer.RULE, case(head, released(), steps=900))
    assert "trainable since step 300" in finding.title
    assert "add_param_group" in finding.fix.text


@pytest.mark.parametrize(
    ("head", "body", "steps"),
    [
        (parameter(grads=[(40, 0.5)]), released(late=None), 900),  # it has moved since
        (parameter(grads=[(40, 0.5)]), released(), 340),  # the optimizer may still be made
        (parameter(grads=[(300, 0.5)]), released(), 900),  # another model, of which one part is left out
    ],
)
def test_not_released(head: Parameter, body: Parameter, steps: int) -> None:
    assert not said(parameters_not_in_optimizer.RULE, case(head, body, steps=steps))
