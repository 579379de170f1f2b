"""target-scale: the targets are far larger than anything the model gives.

What it sees
    Targets of a regression whose size is in the hundreds or more, or whose spread is a hundred times that of the
    predictions, while the loss has not come below what a constant prediction gives.

Why it matters
    A fresh model gives values around 1. To reach 50,000 the weights of the last layer have to grow by that factor, at
    steps whose size the learning rate sets: with Adam it takes as many steps as the targets are large, with SGD the
    squared error gives gradients so large that the run blows up.

Evidence
    Mean, spread and range of the targets and of the predictions over the batches read; the loss beside the variance of
    the targets, which always giving their mean would reach.

Fix
    Scale the targets (subtract the mean, divide by the standard deviation; the logarithm for amounts over several
    orders of magnitude), and undo it when reading predictions.

When it is wrong
    A run that gets there all the same is not reported: the loss decides, not the scale. Nor is one whose targets are
    large only for a single one far away from all others: that is an outlier.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, LossHead
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import loss_of, where
from unstuck.rules.rule import Rule

LARGE = 100.0
"""Size of the targets, and times the spread of the predictions: a fresh model gives values around 1."""
STEPS = 30
"""Values of the loss of a run that has ended; of one that goes on, twenty times as many."""
COUNT = 32
"""Targets read."""
ALONE = 0.1
"""Share of the targets' variance."""


class Scale(NamedTuple):
    """Of the targets of a regression."""

    low: float
    high: float
    mean: float
    sd: float
    targets: int

    @property
    def size(self) -> float:
        return float((self.mean**2 + self.sd**2) ** 0.5)


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for head in learning.heads:
            loss, scale = loss_of(learning, head), _scale(head)
            if loss is None or scale is None or _by_one(scale) or not _large(scale, head.prediction.sd or 0.0):
                continue
            broke = loss.nonfinite > 0 and not curves.learned(learning, loss)
            late = loss.count >= STEPS and (case.outcome != "running" or loss.count >= 20 * STEPS)
            # not clearly below that of always giving the mean
            if broke or (late and curves.ended(loss) > 0.8 * _of_mean(head, scale)):
                yield _finding(learning, head, loss, scale, broke)
                break


def _scale(head: LossHead) -> Scale | None:
    target = head.target
    if head.op not in curves.MEASURES or head.broadcast or target.count < COUNT:
        return None
    if target.min is None or target.max is None or target.mean is None or target.sd is None:
        return None
    return Scale(target.min, target.max, target.mean, target.sd, target.count)


def _large(scale: Scale, predicted: float) -> bool:
    """`predicted`: the spread of the predictions."""
    return scale.size > LARGE or (predicted > 0 and scale.sd > LARGE * predicted and scale.sd > 10)


def _by_one(scale: Scale) -> bool:
    """One value alone makes a good part of the whole spread: that is an outlier, and no scale."""
    off = max(scale.high - scale.mean, scale.mean - scale.low)
    return off * off > ALONE * scale.targets * scale.sd**2


def _of_mean(head: LossHead, scale: Scale) -> float:
    """The loss of always giving the mean; for absolute errors that is some 0.8 of the spread."""
    return scale.sd**2 if head.op in ("mse", "squared") else 0.8 * scale.sd


def _finding(learning: Learning, head: LossHead, loss: Loss, scale: Scale, broke: bool) -> Finding:
    given, number, went = head.prediction, curves.number, curves.course(loss)
    outputs = (
        f"; the predictions around {number(given.mean)}, spread {number(given.sd)}"
        if given.mean is not None and not broke
        else ""
    )
    return RULE.finding(
        severity="error" if broke else "warning",
        confidence=0.85,
        title=f"The targets are around {number(scale.size)} in size, far from what the model gives",
        evidence=(
            f"targets from {number(scale.low)} to {number(scale.high)}, mean {number(scale.mean)}, spread "
            f"{number(scale.sd)}{outputs}",
            f"{went}, then it was no number"
            if broke
            else f"{went}; always giving the mean gives {number(_of_mean(head, scale))}",
        ),
        where=where(learning, head.site),
        fix=Fix(
            f"Scale the targets: (y − {number(scale.mean)}) / {number(scale.sd)}, or their logarithm if they "
            "run over several orders of magnitude; undo it when you read predictions."
        ),
        seen_by="flight",
    )


RULE = Rule(
    "target-scale",
    "learning",
    decide,
    explains=frozenset(
        (
            "no-better-than-constant",
            "still-improving",
            "learning-rate-too-high",
            "learning-rate-too-low",
            "loss-oscillates",
            "clip-too-tight",
        )
    ),
    gathers=True,
)
