"""Samples that throw the loss up."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.numerics.trainings import SITE, found
from unstuck.recorder.records.numerics import LargeRows, Spike
from unstuck.rules.numerics import loss_spike


def test_spikes_are_reported_only_with_what_they_come_from() -> None:
    spike = Spike(step=200, value=6.0, usual=0.5, spread=0.1, site=SITE, number=3, rows=[])
    first, second = replace(spike, indices=[1, 2, 1370]), replace(spike, step=300, indices=[9, 1370, 8])
    (finding,) = found(loss_spike.RULE, spikes=[first, second])
    assert finding.where.sample == 1370
    by_chance = [replace(spike, indices=[*range(24), 90]), replace(second, indices=[5, 90])]
    assert not found(loss_spike.RULE, spikes=by_chance)
    assert not found(loss_spike.RULE, spikes=[first])
    assert not found(loss_spike.RULE, spikes=[first, replace(second, indices=[9, 8])])
    rows = [LargeRows(name="r", rows=[1], largest=9.0, usual=0.1, shape=[3])]
    large = [replace(first, indices=[1, 2, 3], rows=rows), replace(second, indices=[4, 5, 6], rows=rows)]
    unexplained = replace(spike, step=310, indices=[7, 8, 9])
    unseen = replace(unexplained, rows=None)
    assert found(loss_spike.RULE, spikes=[*large, unseen, unseen]), "nobody had time to look at these"
    assert not found(loss_spike.RULE, spikes=[*large, unexplained, unexplained])
    own = [replace(spike, rows=rows), replace(spike, step=300, rows=rows)]
    assert not found(loss_spike.RULE, spikes=own), "rewards have rare large values by nature"
