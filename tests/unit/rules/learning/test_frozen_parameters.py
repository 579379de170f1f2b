"""Optimizers of frozen weights."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.learning.ownership import case, parameter, said
from unstuck.recorder.records.learning import StillCopy
from unstuck.rules.learning import frozen_parameters


def test_everything_frozen_but_a_norm() -> None:
    frozen = parameter("model.fc.weight", trainable=False, moved=False, fresh=True, in_graph=0)
    (finding,) = said(frozen_parameters.RULE, case(frozen, parameter("model.norm.weight", (8,))))
    assert "`model.norm` are left to train" in finding.title


def test_a_new_head_on_a_frozen_body_and_biases_of_a_trained_one() -> None:
    body = parameter("model.body.weight", trainable=False, moved=False, fresh=True, in_graph=0)
    assert not said(frozen_parameters.RULE, case(body, parameter("model.head.weight")))
    trained = parameter("model.body.weight", trainable=False, moved=False, fresh=False, in_graph=0)
    assert not said(frozen_parameters.RULE, case(trained, parameter("model.body.bias", (8,))))


def test_a_second_network_that_never_follows() -> None:
    copy = StillCopy(site=("/project/train.py", 8, "follow"), name="agent.target", parameters=4, since=15)
    (finding,) = said(frozen_parameters.RULE, case(parameter("model.fc.weight"), still_copy=copy))
    assert finding.where.line == 8
    assert "`agent.target` never follows the network that learns" in finding.title
    late = replace(copy, since=case().learnings[0].steps - 20)
    assert not said(frozen_parameters.RULE, case(parameter("model.fc.weight"), still_copy=late))
    still = parameter("model.fc.weight", moved=False)
    assert not said(frozen_parameters.RULE, case(still, still_copy=copy)), "nothing learns"
