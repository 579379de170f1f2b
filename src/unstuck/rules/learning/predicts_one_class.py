"""predicts-one-class: the model gives the most frequent class for everything.

What it sees
    In all the last batches that were read, (nearly) every prediction falls on one class: the one that is more than ten
    times as frequent as the rarest.

Why it matters
    With 97 % of one class, always saying that class is right 97 % of the time, and a loss averaged over samples gives
    the few others too little weight. The accuracy looks good; the model has learned nothing.

Evidence
    Share of the predictions on that class, share of the targets, the number of batches looked at; the loss beside that
    of a constant prediction.

Fix
    Weight the classes in the loss (`weight=`, `pos_weight=`) or draw the rare ones more often (WeightedRandomSampler).

When it is wrong
    In early steps every model does that: it is said after some hundred steps only, and not where the loss is already
    well below that of a constant prediction (then the ranking is right and only the threshold is not).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, LossHead
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import loss_of, where
from unstuck.rules.rule import Rule

STEPS = 100
"""Values of the loss; before that every model gives one class for everything."""
LONG = 600
"""Values of the loss of a run that goes on."""
ALL = 0.995
"""Share of the predictions."""
IMBALANCE = 10.0
"""Times that the most frequent class is as frequent as the rarest."""
CLASSES = 50
"""Of more the rarest is rare in any case."""
RECENT, SAMPLES = 3, 150
"""Batches of the second half of the run that were read, and samples in them."""


class Collapse(NamedTuple):
    share: float
    """Of the predictions that are the most frequent class,"""
    most: float
    """and of the targets;"""
    least: float
    """and of the targets that are the rarest."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for head in learning.heads:
            loss = loss_of(learning, head)
            if loss is None or loss.count < STEPS or (case.outcome == "running" and not _settled(loss)):
                continue
            collapse = _collapsed(head)
            if collapse is not None and not _ranks(head, loss):
                yield _finding(learning, head, loss, collapse)
                break


def _settled(loss: Loss) -> bool:
    """A training that goes on may yet learn the rare classes."""
    return loss.count >= LONG and curves.flat(loss)


def _collapsed(head: LossHead) -> Collapse | None:
    target, given = head.target, head.prediction
    if target.classes is None or not 2 <= target.classes <= CLASSES or target.majority is None or head.weighted:
        return None
    if given.share is None or given.recent < RECENT or given.samples < SAMPLES:
        return None
    least = 1 - target.majority if target.minority is None else target.minority
    if given.share < ALL or given.top != target.of or least <= 0 or target.majority <= IMBALANCE * least:
        return None
    return Collapse(given.share, target.majority, least)


def _ranks(head: LossHead, loss: Loss) -> bool:
    best = curves.constant(head)
    if best is None:  # weighted, focal: it cannot be compared
        return curves.ended(loss) < 0.7 * curves.first(loss)
    return curves.ended(loss) < 0.8 * best


def _finding(learning: Learning, head: LossHead, loss: Loss, collapse: Collapse) -> Finding:
    given = head.prediction
    best = curves.constant(head)
    beside = f"; a constant prediction gives {best:.3g}" if best is not None else ""
    return RULE.finding(
        severity="warning",
        confidence=0.85,
        title=f"The model gives class {given.top} for everything, which {collapse.most:.0%} of the samples are",
        evidence=(
            f"{collapse.share:.1%} of the predictions in the last {given.recent} batches read are class {given.top}; "
            f"of {head.target.count:,} targets it is {collapse.most:.1%}, the rarest class {collapse.least:.2%}",
            f"the loss is {curves.ended(loss):.3g} after {loss.count:,} steps{beside}",
        ),
        where=where(learning, head.site),
        fix=Fix(
            "Weight the rare classes in the loss (`weight=` of CrossEntropyLoss, `pos_weight=` of BCEWithLogitsLoss), "
            "or draw them more often with a WeightedRandomSampler."
        ),
        seen_by="flight",
    )


RULE = Rule(
    "predicts-one-class",
    "learning",
    decide,
    explains=frozenset(("no-better-than-constant", "still-improving", "labels-imbalanced")),
    gathers=True,
)
