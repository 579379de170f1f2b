"""Clipping of gradients that are still scaled."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.numerics.trainings import LINE, found
from unstuck.recorder.records.numerics import Clips, Scaler
from unstuck.rules.numerics import clip_before_unscale


def test_clipping_before_the_unscaling() -> None:
    scaler = Scaler(scale=65536.0, first=65536.0, updates=100)
    clips = Clips(calls=100, clipped=100, sum_ratio=1e6, max_norm=1.0, scaled=100, site=LINE)
    (finding,) = found(clip_before_unscale.RULE, clips=clips, scaler=scaler)
    assert finding.where.line == 12
    assert not found(clip_before_unscale.RULE, clips=replace(clips, scaled=0), scaler=scaler)
    assert not found(clip_before_unscale.RULE, clips=clips)
