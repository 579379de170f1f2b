"""target-scale: the targets are far larger than anything the model outputs.

What it sees
    Targets of a regression in the hundreds or more, or with a spread a hundred times that of the predictions, while the
    loss is no better than that of a constant prediction.

Why it matters
    A fresh model outputs values around 1. To reach 50,000 the weights of the last layer have to grow by that factor, in
    steps whose size the learning rate sets: with Adam that takes as many steps as the targets are large, with SGD the
    squared error gives gradients so large that the run blows up.

Evidence
    Mean, spread and range of the targets and of the predictions over the batches read; the loss compared with the
    variance of the targets, which always predicting their mean would reach.

Fix
    Scale the targets (subtract the mean, divide by the standard deviation; the logarithm for amounts over several
    orders of magnitude), and undo it when reading predictions.

When it is wrong
    A run that gets there all the same is not reported: the loss decides, not the scale. Nor is one whose targets are
    large only because of a single one far away from all others: that is an outlier.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning, Loss, LossHead
from unstuck.rules.rule import Rule
from unstuck.rules.training import (
    REGRESSION_OPS,
    SQUARED_OPS,
    course,
    end_mean,
    has_learned,
    loss_of,
    number,
    where,
)

MIN_SIZE = 100.0  # of the targets, or times the spread of the predictions: a fresh model outputs values around 1
MIN_SPREAD = 10.0  # of the targets, where it is compared with the predictions'
MIN_LOSS_VALUES, MIN_LOSS_VALUES_RUNNING = 30, 600
MIN_TARGETS = 32
MAX_SHARE_OF_ONE = 0.1  # of the variance, by the target farthest away


class Scale(NamedTuple):
    """Of the targets of a regression."""

    low: float
    high: float
    mean: float
    sd: float
    size: float
    constant_loss: float
    """Of always predicting the mean; for absolute errors that is some 0.8 of the spread."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for head in learning.heads:
            loss, scale = loss_of(learning, head), _scale(head)
            if loss is None or scale is None:
                continue
            was_given = any(birth.outside for birth in learning.births if birth.site == loss.site)
            became_nan = loss.nonfinite > 0 and not was_given and not has_learned(learning, loss)
            late = loss.count >= (MIN_LOSS_VALUES if case.outcome != "running" else MIN_LOSS_VALUES_RUNNING)
            if became_nan or (late and end_mean(loss) > 0.8 * scale.constant_loss):
                yield _finding(learning, head, loss, scale, became_nan)
                break


def _scale(head: LossHead) -> Scale | None:
    """Where it is large, and not because of one outlier."""
    target = head.target
    if head.op not in REGRESSION_OPS or head.broadcast or target.count < MIN_TARGETS:
        return None
    low, high, mean, sd = target.min, target.max, target.mean, target.sd
    if low is None or high is None or mean is None or sd is None:
        return None
    size, predicted = float((mean**2 + sd**2) ** 0.5), head.prediction.sd or 0.0
    large = size > MIN_SIZE or (0 < MIN_SIZE * predicted < sd and sd > MIN_SPREAD)
    farthest = max(high - mean, mean - low)
    outlier = farthest**2 > MAX_SHARE_OF_ONE * target.count * sd**2
    if not large or outlier:
        return None
    return Scale(low, high, mean, sd, size, sd**2 if head.op in SQUARED_OPS else 0.8 * sd)


def _finding(learning: Learning, head: LossHead, loss: Loss, scale: Scale, became_nan: bool) -> Finding:
    predicted, outputs = head.prediction, ""
    if predicted.mean is not None and not became_nan:
        outputs = f"; the predictions have mean {number(predicted.mean)}, spread {number(predicted.sd)}"
    return RULE.finding(
        severity="error" if became_nan else "warning",
        confidence=0.85,
        title=f"The targets are around {number(scale.size)} in size, far from what the model outputs",
        evidence=(
            f"targets from {number(scale.low)} to {number(scale.high)}, mean {number(scale.mean)}, spread "
            f"{number(scale.sd)}{outputs}",
            f"{course(loss)}, then it became NaN"
            if became_nan
            else f"{course(loss)}; always predicting the mean gives {number(scale.constant_loss)}",
        ),
        where=where(learning, head.site),
        fix=f"Scale the targets: (y − {number(scale.mean)}) / {number(scale.sd)}, or their logarithm if they "
        "range over several orders of magnitude; undo it when you read predictions.",
    )


RULE = Rule(
    "target-scale",
    "learning",
    decide,
    explains=frozenset(
        (
            "learning-rate-too-high",
            "learning-rate-too-low",
            "loss-oscillates",
            "clip-too-tight",
            "exploding-gradient",
            "nonfinite-born",
        )
    ),
    gathers=True,
)
