"""Layers that get no gradient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.rules.learning.ownership import SITE, built, case, parameter, said
from unstuck.recorder.records.learning import FlatOperation, GraphCut, Parameter, TermCut
from unstuck.rules.learning import graph_cut


def cut(**more: Any) -> GraphCut:
    about: dict[str, Any] = {"lost": ["model.encoder"], "parameters": 2, "begins": "model.encoder", "op": "detach"}
    where = {"ends": "model.decoder", "site": ("net.py", 16, "keep"), "proven": 2, "step": 9, "times": 1}
    return GraphCut(**{**about, **where, **more})


def unreached(**more: Any) -> Parameter:
    lost = {"in_graph": 0, "none": 40, "moved": False, "grads": [], "fresh": True}
    return parameter("model.encoder.weight", **{**lost, **more})


def test_a_cut_is_named_with_its_line_and_both_modules() -> None:
    (finding,) = said(graph_cut.RULE, case(parameter(), unreached(), cut=cut()))
    assert (finding.severity, finding.where.line) == ("error", 16)
    assert "between `model.encoder` and `model.decoder`" in finding.title


@pytest.mark.parametrize(
    ("lost", "ended"),
    [
        (unreached(fresh=False), cut()),  # trained before
        (unreached(called=0), cut()),  # an idle expert
        (unreached(), cut(training=False)),
        (unreached(), cut(proven=0)),
        (unreached(in_graph=3), cut()),  # another loss reaches it
        (unreached(trainable=False), cut()),
    ],
)
def test_not_cut_or_on_purpose(lost: Parameter, ended: GraphCut) -> None:
    assert not said(graph_cut.RULE, case(parameter(), lost, cut=ended))


def test_weights_that_the_script_would_update_itself() -> None:
    (finding,) = said(graph_cut.RULE, case(parameter(), cut=cut(by_hand=5)))
    assert (finding.severity, finding.where.line) == ("error", 16)
    assert "no loss reached them in 5 steps" in finding.evidence[0]
    assert not said(graph_cut.RULE, case(parameter(), cut=cut(by_hand=5, training=False)))


def test_a_loss_that_reaches_no_matrix() -> None:
    (finding,) = said(graph_cut.RULE, case(parameter(), unreached(), cut=cut(ends="the loss", proven=1)))
    assert finding.severity == "warning"
    assert finding.title.endswith("between `model.encoder` and the loss")


def test_a_loss_that_is_a_leaf() -> None:
    (finding,) = said(graph_cut.RULE, case(unreached(), cut=cut(op="item", ends="the loss"), leaf_losses=50))
    assert "no graph" in finding.title


def test_an_operation_without_a_slope() -> None:
    flat = FlatOperation(operation="sign", lost=["model.0.weight"], site=SITE)
    behind = parameter(name="model.0.weight", seen=40, zero=40)
    (finding,) = said(graph_cut.RULE, case(behind, flat=flat))
    assert "through `sign`" in finding.title
    assert finding.where.line == SITE[1]
    assert not said(graph_cut.RULE, case(replace(behind, zero=39), flat=flat))


def test_one_observed_step_is_enough_where_many_were_made_in_vain() -> None:
    lost = unreached(seen=1, none=1)
    many, few = (case(lost, built=[built(steps=steps, in_graph=0, moved=0)]) for steps in (361, 40))
    (finding,) = said(graph_cut.RULE, many)
    assert "did not move in 361 steps" in finding.evidence[0]
    assert not said(graph_cut.RULE, few)


def test_a_result_that_is_dropped() -> None:
    ended = cut(op="index_add", ends="", dropped=True, times=2)
    (finding,) = said(graph_cut.RULE, case(parameter(), cut=ended))
    assert finding.severity == "error"
    assert "`index_add` is dropped" in finding.title
    (finding,) = said(graph_cut.RULE, case(parameter(), cut=replace(ended, op="")))
    assert "The output of" in finding.title
    assert not said(graph_cut.RULE, case(parameter(), cut=replace(ended, times=1)))


def test_a_term_without_a_gradient() -> None:
    term = TermCut(term="gp", op="autograd.grad", site=SITE, loss=SITE, seen=5)
    (finding,) = said(graph_cut.RULE, case(parameter(), term_cut=term))
    assert "`gp`" in finding.title
    assert "create_graph=True" in finding.fix.text
    assert not said(graph_cut.RULE, case(parameter(), term_cut=replace(term, seen=4)))
