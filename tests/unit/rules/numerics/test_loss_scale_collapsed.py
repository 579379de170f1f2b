"""A GradScaler that skips every step."""

from __future__ import annotations

from tests.unit.rules.numerics.trainings import found
from unstuck.recorder.records.numerics import Scaler
from unstuck.rules.numerics import loss_scale_collapsed


def test_a_loss_scale_that_collapsed() -> None:
    fallen = Scaler(scale=0.002, first=65536.0, lowest=0.002, updates=160, skipped_in_row=25)
    assert found(loss_scale_collapsed.RULE, scaler=fallen)
    searching = Scaler(scale=8192.0, first=65536.0, lowest=8192.0, updates=160, skipped_in_row=3)
    assert not found(loss_scale_collapsed.RULE, scaler=searching)
