"""Activations that cannot reach the targets."""

from __future__ import annotations

from typing import Any

from tests.unit.rules.learning.trainings import found, head, numbers
from unstuck.recorder.records.learning import LossHead, OutOfReach, Predictions
from unstuck.rules.learning import output_range_excludes_targets


def test_an_output_that_cannot_reach_its_targets() -> None:
    beyond = {"sigmoid": OutOfReach(share=0.9, floor=60.0), "relu": OutOfReach(share=0.01, floor=0.1)}
    target = numbers(-5, 20, 8, 6, beyond=beyond)
    (finding,) = found(output_range_excludes_targets.RULE, head("mse", after="sigmoid", target=target))
    assert "90%" in finding.title
    assert "60" in finding.evidence[1]
    assert found(output_range_excludes_targets.RULE, head("mse", after="relu", target=target)) == []
    assert found(output_range_excludes_targets.RULE, head("mse", target=target)) == []
    assert found(output_range_excludes_targets.RULE, head("bce_logits", after="relu"))
    one = head("mse", after="softmax", after_dim=1, after_shape=[32, 1])
    assert "always 1" in found(output_range_excludes_targets.RULE, one)[0].title


def test_a_hidden_state_within_its_range() -> None:
    target = numbers(1.8, 5, 3, 0.8, beyond={"tanh": OutOfReach(share=1.0, floor=6.0)})
    within, beyond = Predictions(min=-0.2, max=1.0), Predictions(min=-0.2, max=3.0)
    (finding,) = found(output_range_excludes_targets.RULE, head("mse", after="gru", target=target, prediction=within))
    assert "hidden state of a GRU" in finding.title
    assert "linear layer" in finding.fix.text
    first_state_is_large = head("mse", after="gru", target=target, prediction=beyond)
    assert found(output_range_excludes_targets.RULE, first_state_is_large) == []
    assert found(output_range_excludes_targets.RULE, head("mse", after="lstm", target=target)) == [], "not measured"


def test_a_product_that_cannot_reach_its_targets() -> None:
    def scaled(share: float, floor: float, **more: Any) -> LossHead:
        target = numbers(-7, -1, -5, 2, beyond={"scaled": OutOfReach(share=share, floor=floor)})
        return head("squared", **{"target": target, "scaled": "sigmoid", "bare": True, **more})

    (finding,) = found(output_range_excludes_targets.RULE, scaled(0.98, 8.0))
    assert "98% of the targets" in finding.title
    assert "below about 8" in finding.evidence[2]
    assert found(output_range_excludes_targets.RULE, scaled(0.98, 0.1)) == []  # by little
    assert found(output_range_excludes_targets.RULE, scaled(0.4, 8.0)) == []  # a mask on magnitudes
    assert found(output_range_excludes_targets.RULE, scaled(0.98, 8.0, bare=False)) == []  # some may not count
