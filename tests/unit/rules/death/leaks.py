"""Runs whose memory grows, made by hand."""

from __future__ import annotations

from typing import Any

from unstuck.model import (
    Case,
    Flight,
    MemoryCurve,
    MemoryPoint,
)
from unstuck.recorder.records.loops import Grower, GrowthSnapshot

MB = 1 << 20
PID = 50


def curve(*megabytes: float, pid: int = PID, per_step: int = 20) -> MemoryCurve:
    points = [MemoryPoint(float(n), int(mb * MB), 1 + n * per_step) for n, mb in enumerate(megabytes)]
    return MemoryCurve(pid, tuple(points))


def held(step: int = 200, device: int | None = None, **more: Any) -> GrowthSnapshot:
    """What the process answered: by default a list of losses with their graphs."""
    told: dict[str, Any] = {"holds": "Tensor", "graph": True, "bytes": 4, "times": 4, **more}
    grower = Grower(
        **{
            "path": "losses in main",
            "first": 1,
            "first_step": 1,
            "now": step,
            "site": ("train.py", 12, "main"),
            **told,
        },
        step=step,
    )
    return GrowthSnapshot(pid=PID, at=9.0, step=step, device=device, growing=[grower])


def leaking(*told: GrowthSnapshot, megabytes: tuple[float, ...] = tuple(range(300, 500, 20)), **more: Any) -> Case:
    flights = (Flight(PID, role="main", step=200),)
    return Case(root=PID, flights=flights, memory=(curve(*megabytes),), growth_snapshots=told or (held(),), **more)
