"""Clipping of gradients that are still scaled."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.numerics.trainings import LINE, found, loss
from unstuck.recorder.records.numerics import Clips, Scaler
from unstuck.rules.numerics import clip_before_unscale


def test_clipping_before_the_unscaling() -> None:
    scaler = Scaler(scale=65536.0, first=65536.0, updates=100)
    clips = Clips(calls=100, clipped=100, sum_ratio=1e6, max_norm=1.0, scaled=100, site=LINE)
    (finding,) = found(clip_before_unscale.RULE, clips=clips, scaler=scaler)
    assert finding.where.line == 12
    assert not found(clip_before_unscale.RULE, clips=replace(clips, scaled=0), scaler=scaler)
    assert not found(clip_before_unscale.RULE, clips=clips)


def test_clipping_by_hand_before_the_division_by_an_own_scale() -> None:
    clips = Clips(calls=100, clipped=100, sum_ratio=1e6, max_norm=1.0, scaled=100, site=LINE, scales=[64.0, 128.0])
    risen = replace(loss(), points=[(n, 1.0 + n / 100) for n in range(100)])
    (finding,) = found(clip_before_unscale.RULE, clips=clips, losses=[risen])
    assert "multiplies its loss by 128" in finding.evidence[0]
    fallen = replace(risen, points=[(n, 0.9) for n in range(100)])
    assert not found(clip_before_unscale.RULE, clips=clips, losses=[fallen]), "the scale has doubled"
    assert not found(clip_before_unscale.RULE, clips=replace(clips, scales=[1.0, 1.0]), losses=[risen])
    assert not found(clip_before_unscale.RULE, clips=replace(clips, scaled=0), losses=[risen])
