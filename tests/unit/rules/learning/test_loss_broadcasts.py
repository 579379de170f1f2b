"""Predictions and targets of different shapes."""

from __future__ import annotations

from tests.unit.rules.learning.trainings import found, head, numbers
from unstuck.rules.learning import loss_broadcasts

OF_UNKNOWN_TARGETS = head("squared", broadcast=([32, 1], [32, 32]))


def test_a_column_against_a_row() -> None:
    target = numbers(-2, 2, 0, 1, shape=[32, 32], expanded=[1, 32])
    (finding,) = found(loss_broadcasts.RULE, head("mse", broadcast=([32, 1], [32, 32]), target=target))
    assert "[32, 1]" in finding.title
    assert "[32]" in finding.title
    assert "variance" in finding.evidence[1]
    assert found(loss_broadcasts.RULE, head("squared", broadcast=([32], [32, 32])))
    assert found(loss_broadcasts.RULE, head("mse", broadcast=([32, 1], [32, 3])))


def test_what_is_meant_to_broadcast() -> None:
    assert found(loss_broadcasts.RULE, head("squared", broadcast=([32, 1], [32, 3]))) == []
    assert found(loss_broadcasts.RULE, head("mse", broadcast=([1], [32]))) == []
    assert found(loss_broadcasts.RULE, head("mse", target=numbers(1, 1, 1, 0, expanded=[1]))) == []


def test_the_variance_is_no_floor_of_what_is_no_square() -> None:
    target = numbers(-2, 2, 0, 1, shape=[32, 32], expanded=[1, 32])
    for broadcast in (head("smooth_l1", broadcast=([32, 1], [32, 32]), target=target), OF_UNKNOWN_TARGETS):
        (finding,) = found(loss_broadcasts.RULE, broadcast)
        assert finding.evidence[1].startswith("the loss went from ")
