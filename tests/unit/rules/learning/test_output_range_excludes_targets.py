"""Activations that cannot reach the targets."""

from __future__ import annotations

from tests.unit.rules.learning.trainings import found, head, numbers
from unstuck.recorder.records.learning import OutOfReach
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
