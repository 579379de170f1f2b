"""A softmax over the batch."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.learning import ownership
from tests.unit.rules.learning.trainings import case, found, head
from unstuck.recorder.records.learning import FlatOperation, Predictions, Range
from unstuck.rules.diagnose import diagnose
from unstuck.rules.learning import RULES, graph_cut, softmax_over_wrong_dim


def test_a_softmax_over_the_batch_is_the_cause_of_both() -> None:
    twice = head("cross_entropy", after="softmax", after_dim=0, after_shape=[32, 10])
    (finding,) = diagnose(case(twice), RULES).findings
    assert finding.rule == "softmax-over-wrong-dim"
    assert finding.consequences[0].startswith("activation-applied-twice")
    rows = Predictions(rows=Range(min=0.1, max=0.4))
    assert found(softmax_over_wrong_dim.RULE, head("cross_entropy", dim=0, prediction=rows))
    assert found(softmax_over_wrong_dim.RULE, head("nll", after="log", prediction=rows))


def test_a_softmax_over_classes_or_between_samples_is_left_alone() -> None:
    one = Predictions(rows=Range(min=1.0, max=1.0))
    assert found(softmax_over_wrong_dim.RULE, head("cross_entropy", prediction=one)) == []
    assert found(softmax_over_wrong_dim.RULE, head("cross_entropy", shape=[10], dim=0, prediction=one)) == []
    square = head("mse", after="softmax", after_dim=0, after_shape=[32, 1])
    assert found(softmax_over_wrong_dim.RULE, square) == []


def test_ctc_gets_classes_in_the_last_dimension() -> None:
    off, right = Range(min=0.1, max=0.4), Range(min=0.999, max=1.001)
    turned = head("ctc", shape=[24, 7, 30], dim=-1, prediction=Predictions(rows=off, width=7))
    (finding,) = found(softmax_over_wrong_dim.RULE, turned)
    assert "dim=1" in finding.fix.text
    assert "over dimension 2" in finding.title
    frames = head("ctc", shape=[48, 32, 9], dim=0, prediction=Predictions(rows=off, width=9))
    assert "dim=2" in found(softmax_over_wrong_dim.RULE, frames)[0].fix.text
    for fine in (
        head("ctc", shape=[24, 7, 30], dim=1, prediction=Predictions(rows=right, width=7)),
        head("ctc", shape=[24, 32, 7], dim=2, prediction=Predictions(rows=off, width=7)),  # weighted after it
        head("ctc", shape=[24, 32, 7], dim=None, prediction=Predictions(rows=off, width=7)),  # no softmax is known
    ):
        assert found(softmax_over_wrong_dim.RULE, fine) == []


def test_a_softmax_over_one_element() -> None:
    flat = FlatOperation(operation="softmax", lost=["model.query.weight"], site=ownership.SITE, shape=[96, 8, 1])
    query = ownership.parameter("model.query.weight", seen=40, zero=40)
    training = ownership.case(query, ownership.parameter(), flat=flat)
    (finding,) = ownership.said(softmax_over_wrong_dim.RULE, training)
    assert "runs over one element" in finding.title
    assert "dim=1" in finding.fix.text
    assert ownership.said(graph_cut.RULE, training) == [], "one rule says it"
    learns = ownership.case(replace(query, zero=30), flat=flat)
    assert ownership.said(softmax_over_wrong_dim.RULE, learns) == []
