"""slow-host-to-device, on Cases made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.rules.pace.waits import MB, PID, SITE, case
from unstuck.recorder.records.loaders import GpuCopies
from unstuck.rules.pace import (
    slow_host_to_device,
)


def copies(**more: Any) -> GpuCopies:
    told: dict[str, Any] = {"number": 0, "site": SITE, "step": 99, "workers": 2, "moved": True, "trains": True}
    took = {"bytes": 80 * MB, "ordinary": 0.02, "pinned": 0.004, "pinning": 0.01, "period": 0.1, "waits": 0.0}
    return GpuCopies(pid=PID, at=9.0, **{**told, **took, **more})


def test_copies_that_take_long_are_asked_about() -> None:
    (question,) = slow_host_to_device.decide(case(copies()))
    assert "takes 20 ms as it is and 4 ms from pinned memory, 16% of a step less" in question.asks
    assert "pin_memory=True" in question.would_decide


@pytest.mark.parametrize(
    "more",
    [{"ordinary": 0.012}, {"moved": False}, {"trains": False}, {"waits": 0.2}, {"pinning": 0.09}, {"workers": 0}],
    ids=["little", "stays-on-the-cpu", "validation", "waits-for-data", "as-dear-to-pin", "no-workers"],
)
def test_copies_that_do_not_matter_are_left_alone(more: dict[str, Any]) -> None:
    assert not list(slow_host_to_device.decide(case(copies(**more))))
