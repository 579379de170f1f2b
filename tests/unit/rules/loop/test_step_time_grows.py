"""step-time-grows, on Cases made by hand: where it speaks, how loud, and where it must not."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from unstuck.model import Case, Flight, Step, StepTrend
from unstuck.recorder.records.loops import Grower, GrowthSnapshot
from unstuck.rules.loop import step_time_grows

PID = 50


def snapshot(path: str = "losses in main", holds: str = "Tensor", **more: Any) -> GrowthSnapshot:
    """What the process answered: by default a list of tensors without their graphs."""
    site = ("train.py", 12, "main")
    grower = Grower(
        path=path, holds=holds, bytes=4, times=4, first=1, first_step=1, now=200, step=200, site=site, **more
    )
    return GrowthSnapshot(pid=PID, at=9.0, step=200, growing=[grower])


def steps(cpu: Any, count: int = 1000, size: Any = lambda _: 64) -> Case:
    made = [
        Step(float(n), cpu(n) * 1.1, backward=cpu(n) / 4, cpu=cpu(n), size=size(n), number=n)
        for n in range(1, count, 4)
    ]
    return Case(flights=(Flight(PID, role="main", step=count),), trends=(StepTrend(PID, tuple(made)),))


def severities(case: Case) -> list[str]:
    return [finding.severity for finding in step_time_grows.decide(case)]


noise = random.Random(7)


def test_steps_that_become_dearer() -> None:
    (finding,) = step_time_grows.decide(steps(lambda n: 0.001 + n * 4e-6))
    assert finding.severity == "warning"
    assert "64 elements at first, 64 at last" in finding.evidence[2]
    unsized = steps(lambda n: 0.001 + n * 4e-6, size=lambda _: 0)
    assert severities(unsized) == [], "longer sequences would look the same"
    assert severities(replace(unsized, growth_snapshots=(snapshot(),))) == ["info"]


@pytest.mark.parametrize(
    "case",
    [
        steps(lambda n: 0.001 + n * 4e-6, size=lambda n: 64 + n // 4),
        steps(lambda n: 0.001 + n * 4e-6, count=150),
        steps(lambda _: 0.001 * noise.choice((1, 1, 1, 5))),
        steps(lambda n: 0.05 if n < 30 else 0.001),
        steps(lambda n: 0.001 + min(n, 300) * 1e-5),
        steps(lambda n: 0.001 if n < 500 else 0.004),
        steps(lambda n: 0.001 + n * 5e-7),
        steps(lambda n: (0.00054, 0.00112, 0.0013, 0.00155)[min(3, n // 250)]),
        steps(lambda n: (0.0054, 0.0112, 0.013, 0.0155)[min(3, n // 250)]),
    ],
    ids=["longer", "few", "varies", "warm-up", "levels-off", "one-jump", "little", "cold-caches", "a-neighbour-too"],
)
def test_steps_that_have_a_reason(case: Case) -> None:
    assert severities(case) == []


def test_the_hooks_are_named() -> None:
    hooks = snapshot(path="forward hooks of model.0 in main", kind="hooks", holds="")
    (finding,) = step_time_grows.decide(replace(steps(lambda n: 0.001 + n * 4e-6), growth_snapshots=(hooks,)))
    assert finding.where.line == 12
    assert "Register the hook once" in finding.fix.text
