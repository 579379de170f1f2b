"""still-improving: the run ended while the loss was still falling steadily: not stuck, stopped early.

What it sees
    The run came to its end, and over its last third the loss fell steadily, by a good part of what there is, while it
    is still far from 0 (or from the best it was compared with).

Why it matters
    The script trains for a fixed number of epochs, and that number was too small for this rate and model.

Evidence
    The loss at two thirds of the run and at its end, how steady the fall is, and how many more steps the curve needs at
    its present pace.

Fix
    Train on: the number of steps is named. A higher learning rate or a wider model may get there sooner; whether the
    model is too small cannot be said while the loss still falls.

When it is wrong
    Most runs end before the last bit is learned: it is information, never an alarm, and said only where no other rule
    of this family speaks.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log
from statistics import fmean

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import main_loss, where
from unstuck.rules.rule import Rule

POINTS = 30
"""Of the loss curve: ten in its last third."""
FALLS = ((0.3, 6.0, 0.01), (0.1, 6.0, 0.05), (0.015, 20.0, 0.2))
"""Fall over the last third, beside its level; slope beside its standard error; what is left of where it began.
A fall that is slow must be steady and far from its end, to tell it from a curve that levels off."""


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome != "finished":
        return
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or loss.nonfinite or curves.adversarial(learning) or len(loss.points) < POINTS:
            continue
        if _falls(learning, loss):
            yield _finding(learning, loss)


def _last_third(loss: Loss) -> list[tuple[int, float]]:
    return list(loss.points[-(len(loss.points) // 3) :])


def _falls(learning: Learning, loss: Loss) -> bool:
    third = _last_third(loss)
    values = [value for _, value in third]
    half = len(values) // 2
    early, late = fmean(values[:half]), fmean(values[half:])
    if late <= 0 or early <= late:
        return False
    fell, steady = 2 * (early - late) / early, steadiness(third)
    best = curves.at_constant(learning, loss)
    left = min(late / curves.first(loss), best if best is not None else 1.0) if curves.first(loss) > 0 else 0.0
    return any(fell >= enough and steady >= sure and left >= far for enough, sure, far in FALLS)


def steadiness(points: list[tuple[int, float]]) -> float:
    """How many standard errors the slope of a straight line through them is below 0."""
    count = len(points)
    xs, ys = [float(step) for step, _ in points], [value for _, value in points]
    mx, my = fmean(xs), fmean(ys)
    spread = sum((x - mx) ** 2 for x in xs)
    if spread == 0 or count < 4:
        return 0.0
    slope = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / spread
    left = sum((y - my - slope * (x - mx)) ** 2 for x, y in zip(xs, ys, strict=True)) / (count - 2)
    error: float = (left / spread) ** 0.5
    return -slope / max(error, 1e-30)


def _finding(learning: Learning, loss: Loss) -> Finding:
    third = _last_third(loss)
    values = [value for _, value in third]
    edge = max(1, len(values) // 4)
    then, now = fmean(values[:edge]), fmean(values[-edge:])
    lasted = fmean(step for step, _ in third[-edge:]) - fmean(step for step, _ in third[:edge])
    halves = lasted * log(2) / log(then / now) if then > now else lasted
    number = curves.number
    return RULE.finding(
        severity="info",
        confidence=0.7,
        title=f"The loss was still falling when the run ended after {learning.steps:,} steps: stopped early, not stuck",
        evidence=(
            f"it began at {number(curves.first(loss))}, was {number(then)} at two thirds of the run and {number(now)} "
            "at its end",
            f"at that pace it halves in about {_rounded(halves):,} more steps, and is a tenth in about "
            f"{_rounded(halves * 3.3):,}",
        ),
        where=where(learning, loss.site),
        fix=Fix(
            f"Train on, for some {_rounded(halves * 3.3):,} more steps, and see where it levels off; a higher learning "
            "rate or a wider model may get there sooner."
        ),
        seen_by="flight",
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
