"""Clipping that sets the size of every step."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.learning.trainings import SITE, found, loss, optimizer, weight
from unstuck.recorder.records.numerics import Clips
from unstuck.rules.learning import clip_too_tight


def test_clipping_that_sets_every_step() -> None:
    rule = clip_too_tight.RULE
    tight = Clips(calls=200, clipped=200, sum_ratio=1.2e6, hardest=12e3, max_norm=1e-3, site=SITE)
    (finding,) = found(rule, clips=tight)
    assert "6,000 times" in finding.title
    assert found(rule, clips=tight, losses=[loss(2.3, 0.4)]) == [], "it learns"
    assert found(rule, clips=tight, losses=[loss(2.3, 2.0)], optimizers=[optimizer(kind="Adam")]) == [], (
        "Adam undoes it"
    )
    assert found(rule, clips=replace(tight, clipped=20, sum_ratio=1e5)) == [], "now and then"
    assert found(rule, clips=replace(tight, scaled=200)) == [], "scaled gradients are another matter"


def test_clipping_by_hand_counts_where_the_weights_hardly_move() -> None:
    tight = Clips(calls=200, clipped=200, sum_ratio=1.2e6, hardest=12e3, max_norm=1e-3, site=SITE, scales=[1.0, 1.0])
    rule = clip_too_tight.RULE
    assert found(rule, clips=tight, parameters=[weight(5e-5)])
    assert found(rule, clips=tight, parameters=[weight(5e-3)]) == [], "the rate makes up for it"
    assert found(rule, clips=tight, parameters=[]), "the loss is flat"
    assert found(rule, clips=tight, parameters=[], losses=[loss(2.3, 1.8)]) == [], "how the weights move is not known"
