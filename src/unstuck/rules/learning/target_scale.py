"""target-scale: the targets are far larger than anything the model gives.

What it sees
    Targets of a regression whose size is in the hundreds or more, or whose spread is a hundred times that of the
    predictions, while the loss has not come below what a constant prediction gives.

Why training stops
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
from typing import Any

from unstuck.model import Case, Finding, Fix
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import Head, Learning, Loss, learnings
from unstuck.rules.rule import Rule

LARGE = 100.0
NUMBERS = ("mse", "squared", "absolute", "smooth_l1", "huber")
STEPS = 30
ALONE = 0.1
"""Share of the targets' variance."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in learnings(case):
        for head in learning.heads:
            loss = learning.loss_of(head)
            if head.op in NUMBERS and loss is not None and not head.broadcast and _large(head):
                broke = loss.nonfinite > 0 and not curves.learned(learning, loss)
                late = loss.count >= STEPS and (case.outcome != "running" or loss.count >= 20 * STEPS)
                if broke or (late and _not_there(head, loss)):
                    yield _finding(learning, head, loss, broke)
                    break


def _size(head: Head) -> float:
    return float((head.target["mean"] ** 2 + head.target["sd"] ** 2) ** 0.5)


def _large(head: Head) -> bool:
    if "mean" not in head.target or head.target.get("count", 0) < 32:
        return False
    if _by_one(head.target):
        return False
    spread = head.prediction.get("sd", 0.0)
    return _size(head) > LARGE or (spread > 0 and head.target["sd"] > LARGE * spread and head.target["sd"] > 10)


def _by_one(target: dict[str, Any]) -> bool:
    """One value alone makes a good part of the whole spread: that is an outlier, and no scale."""
    off = max(target["max"] - target["mean"], target["mean"] - target["min"])
    return bool(off * off > ALONE * target["count"] * target["sd"] ** 2)


def _not_there(head: Head, loss: Loss) -> bool:
    """The loss is not clearly below that of always giving the mean (for absolute errors some 0.8 of the spread)."""
    squared = head.op in ("mse", "squared")
    mean = head.target["sd"] ** 2 if squared else 0.8 * head.target["sd"]
    return bool(curves.ended(loss) > 0.8 * mean)


def _finding(learning: Learning, head: Head, loss: Loss, broke: bool) -> Finding:
    target, given = head.target, head.prediction
    number = curves.number
    outputs = (
        f"; the predictions around {number(given['mean'])}, spread {number(given['sd'])}"
        if "mean" in given and not broke
        else ""
    )
    squared = head.op in ("mse", "squared")
    reached = f"{number(target['sd'] ** 2 if squared else 0.8 * target['sd'])}"
    went = curves.course(loss)
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error" if broke else "warning",
        confidence=0.85,
        title=f"The targets are around {number(_size(head))} in size, far from what the model gives",
        evidence=(
            f"targets from {number(target['min'])} to {number(target['max'])}, mean {number(target['mean'])}, spread "
            f"{number(target['sd'])}{outputs}",
            f"{went}, then it was no number" if broke else f"{went}; always giving the mean gives {reached}",
        ),
        where=learning.where(head.site),
        fix=Fix(
            f"Scale the targets: (y − {number(target['mean'])}) / {number(target['sd'])}, or their logarithm if they "
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
