"""What the user asked of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from unstuck.model import Times

OnHang = Literal["report", "stop"]
FailOn = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Options:
    on_hang: OnHang = "report"
    times: Times = field(default_factory=Times)
    report: Path | None = None
    fail_on: FailOn | None = None
    detach: bool = False
    verbose: bool = False
    grace: float = 30.0


def times(stall_after: float | None) -> Times:
    """Default times, or all of them replaced by one."""
    if stall_after is None:
        return Times()
    s = stall_after
    return Times(suspect=s, proven=s, busy=s, busy_ratio=0.0, silent=s, silent_ratio=0.0)
