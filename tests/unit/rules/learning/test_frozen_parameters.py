"""Optimizers of frozen weights."""

from __future__ import annotations

from tests.unit.rules.learning.ownership import case, parameter, said
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
