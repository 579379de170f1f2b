"""loss-oscillates: the loss swings up and down without falling, and each update undoes the one before.

What it sees
    The updates of steps that follow each other point in opposite directions, and the loss goes up and down by a good
    part of itself without getting lower.

Why it matters
    The step is longer than the valley is wide: each one lands on the other side, as high as before. With momentum the
    swing is slower, and goes on after the rate would have been right.

Evidence
    The cosine between updates of steps that follow each other, how far the loss swings, where it began and where it is.

Fix
    A smaller learning rate (a third, a tenth), or less momentum; Adam if the scales of the inputs differ.

When it is wrong
    Noise of small batches also makes a loss go up and down; its updates do not reverse. A loss that has fallen far and
    then swings around its lowest value is not reported, nor are runs with several losses (GAN, reinforcement learning).
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean, median

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, Optimizer
from unstuck.rules.learning import curves, steps
from unstuck.rules.learning.measured import main_loss, where
from unstuck.rules.rule import Rule

STEPS = 40
"""Values of the loss."""
PAIRS = 16
"""Of steps that followed each other and were sampled."""
REVERSED = -0.2
"""Median cosine between their updates: noise of batches gives about 0."""
SWING = 0.15
"""Standard deviation of the loss, of its level."""
BACK_AGAIN = -0.8
"""Median cosine: then the loss may be as high on the other side, and not swing at all."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or loss.count < STEPS or curves.adversarial(learning):
            continue
        optimizer = learning.optimizers[0] if learning.optimizers else None
        if optimizer is None or len(optimizer.cosines) < PAIRS or curves.learned(learning, loss):
            continue
        cosine = median(optimizer.cosines)
        swing = min(curves.roughness(loss.recent), curves.roughness(loss.first))
        if ((cosine < REVERSED and swing > SWING) or cosine < BACK_AGAIN) and _not_falling(loss):
            yield _finding(learning, optimizer, loss, cosine, swing)


def _not_falling(loss: Loss) -> bool:
    values = [value for _, value in loss.points]
    half = len(values) // 2
    return half >= 8 and fmean(values[half:]) > 0.9 * fmean(values[half // 2 : half])


def _finding(learning: Learning, optimizer: Optimizer, loss: Loss, cosine: float, swing: float) -> Finding:
    number = curves.number
    momentum = steps.setting(optimizer, "momentum")
    return RULE.finding(
        severity="warning",
        confidence=0.8,
        title="The loss swings without falling: each update undoes the one before",
        evidence=(
            f"cosine between updates that follow each other: {cosine:.2f} at the median of {len(optimizer.cosines)} "
            f"(1: same direction, −1: back again); {steps.describe(optimizer)}",
            f"the loss swings by {swing:.0%}: it was between {number(min(loss.recent))} and "
            f"{number(max(loss.recent))} in the last {len(loss.recent)} steps, {number(curves.first(loss))} at first",
        ),
        where=where(learning, optimizer.site or loss.site),
        fix=Fix(
            f"Try a learning rate of {steps.peak(optimizer) / 10:.1g}"
            + (f", and momentum 0.9 instead of {momentum:g}." if momentum > 0.9 else ".")
        ),
        seen_by="flight",
    )


RULE = Rule(
    "loss-oscillates",
    "learning",
    decide,
    explains=frozenset(("no-better-than-constant", "still-improving")),
    gathers=True,
)
