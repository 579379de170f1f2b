"""Gradients that do not reach the first layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.rules.numerics.trainings import found, loss, parameter
from unstuck.recorder.records.learning import Parameter
from unstuck.rules.numerics import vanishing_gradient


def layers(ratio: float) -> list[Parameter]:
    return [parameter(f"model.{12 - n}.weight", ratio ** (n / 5)) for n in range(6)]


def test_a_gradient_that_vanishes_while_the_loss_stands() -> None:
    (finding,) = found(vanishing_gradient.RULE, parameters=layers(1e-6))
    assert "1,000,000 times smaller" in finding.title
    bias = parameter("model.7.bias", 1e-6, shape=[8])
    assert found(vanishing_gradient.RULE, parameters=[*layers(1e-6), bias])


def test_biases_without_a_name_are_nobodys() -> None:
    nameless = [replace(each, name="") for each in (*layers(1e-6), parameter("model.12.bias", 1.0, shape=[8]))]
    assert found(vanishing_gradient.RULE, parameters=nameless)


@pytest.mark.parametrize(
    "more",
    [
        {"parameters": layers(1e-2)},
        {"parameters": layers(1e-6), "losses": [loss(points=[(n, 2.0 - n / 60) for n in range(100)])]},
        {"parameters": layers(1e-6)[:3]},
        {"parameters": [*layers(1e-6)[:-1], parameter("model.embed.weight", 1e-6, module="Embedding")][2:]},
        {"parameters": [replace(each, module="LSTM") for each in layers(1e-6)]},
        {"parameters": [*layers(1e-6), parameter("model.7.bias", 0.5, shape=[8])]},
        {"parameters": [*layers(0.5)[:-1], parameter("model.7.weight", 1e-9)]},
    ],
    ids=["not far", "it learns", "shallow", "embedding", "recurrent", "tiny input", "tiny input without a bias"],
)
def test_no_vanishing_gradient(more: dict[str, Any]) -> None:
    assert not found(vanishing_gradient.RULE, **more)


def test_a_branch_beside_the_last_layer() -> None:
    """Of an actor and a critic in one loss: the gradient of one says nothing about that of the other."""
    actor = [replace(each, beside=True) for each in layers(1e-6)[3:]]
    assert not found(vanishing_gradient.RULE, parameters=[*layers(1e-6)[:3], *actor])
    assert found(vanishing_gradient.RULE, parameters=[*layers(1e-6), *actor])
