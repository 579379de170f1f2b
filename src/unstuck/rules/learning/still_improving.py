"""still-improving: the run ended while the loss was still falling: not stuck, only stopped early.

What it sees
    The run is over, and during its last third the loss fell steadily, by a good part of its value, while it is still
    far from 0 (or from the best it was compared with).

Why it matters
    The script trains for a fixed number of epochs, and that number was too small for this rate and model: the result is
    worse than it could be.

Evidence
    The loss at two thirds of the run and at its end, and how many more steps the curve needs at its present pace.

Fix
    Train longer: the finding says how many steps. A higher learning rate or a wider model may get there sooner; whether
    the model is too small cannot be said while the loss still falls.

When it is wrong
    Most runs end before the last bit is learned: it is information, never an alarm, and only where no other rule of
    this family has a finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log
from statistics import fmean
from typing import NamedTuple

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss
from unstuck.rules.rule import Rule
from unstuck.rules.training import first_value, main_loss, number, several_losses, share_of_constant, where

MIN_POINTS = 30  # of the loss curve: ten in its last third


class Falling(NamedTuple):
    """At least so much of each."""

    fall: float
    """Over the last third, compared with the level."""
    steadiness: float
    """Slope compared with its standard error."""
    left: float
    """Of where it began."""


# A slow fall must be steady and far from its end, to tell it from a curve that levels off.
MIN_FALLING = (Falling(0.3, 6.0, 0.01), Falling(0.1, 6.0, 0.05), Falling(0.015, 20.0, 0.2))


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome != "finished":
        return
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or loss.nonfinite or several_losses(learning) or len(loss.points) < MIN_POINTS:
            continue
        if _falls(learning, loss):
            yield _finding(learning, loss)


def _last_third(loss: Loss) -> list[tuple[int, float]]:
    return loss.points[-(len(loss.points) // 3) :]


def _falls(learning: Learning, loss: Loss) -> bool:
    third = _last_third(loss)
    values = [value for _, value in third]
    half = len(values) // 2
    early, late = fmean(values[:half]), fmean(values[half:])
    if late <= 0 or early <= late or first_value(loss) <= 0:
        return False
    share = share_of_constant(learning, loss)
    left = min(late / first_value(loss), share if share is not None else 1.0)
    fall, steadiness = 2 * (early - late) / early, _steadiness(third)
    return any(fall >= min_.fall and steadiness >= min_.steadiness and left >= min_.left for min_ in MIN_FALLING)


def _steadiness(points: list[tuple[int, float]]) -> float:
    """How many standard errors the slope of a straight line through them is below 0."""
    mean_step, mean_value = fmean(step for step, _ in points), fmean(value for _, value in points)
    centred = [(step - mean_step, value - mean_value) for step, value in points]
    spread = sum(x * x for x, _ in centred)
    if spread == 0 or len(points) < 4:
        return 0.0
    slope = sum(x * y for x, y in centred) / spread
    variance = sum((y - slope * x) ** 2 for x, y in centred) / (len(points) - 2)
    error: float = (variance / spread) ** 0.5
    return -slope / max(error, 1e-30)


def _finding(learning: Learning, loss: Loss) -> Finding:
    third = _last_third(loss)
    quarter = max(1, len(third) // 4)
    then, now = fmean(value for _, value in third[:quarter]), fmean(value for _, value in third[-quarter:])
    steps = fmean(step for step, _ in third[-quarter:]) - fmean(step for step, _ in third[:quarter])
    halving = steps * log(2) / log(then / now) if then > now else steps
    return RULE.finding(
        severity="info",
        confidence=0.7,
        title=f"The loss was still falling when the run ended after {learning.steps:,} steps: stopped early, not stuck",
        evidence=(
            f"it began at {number(first_value(loss))}, was {number(then)} at two thirds of the run and {number(now)} "
            "at its end",
            f"at that pace it halves in about {_rounded(halving):,} more steps, and is a tenth in about "
            f"{_rounded(halving * 3.3):,}",
        ),
        where=where(learning, loss.site),
        fix=Fix(
            f"Train for some {_rounded(halving * 3.3):,} more steps, and see where it levels off; a higher learning "
            "rate or a wider model may get there sooner.",
            setting="epochs",
        ),
    )


def _rounded(value: float) -> int:
    return int(float(f"{max(1.0, value):.1g}"))


RULE = Rule(
    "still-improving",
    "learning",
    decide,
    explains=frozenset(("no-better-than-constant",)),
    last_resort=True,
    gathers=True,
)
