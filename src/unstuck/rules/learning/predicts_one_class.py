"""predicts-one-class: the model gives the most frequent class for everything.

What it sees
    In all the last batches that were read, (nearly) every prediction falls on one class: the one that is more than ten
    times as frequent as the rarest.

Why training stops
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

from unstuck.model import Case, Finding, Fix
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import Head, Learning, Loss, learnings
from unstuck.rules.rule import Rule

STEPS = 100
LONG = 600
ALL = 0.995
IMBALANCE = 10.0
CLASSES = 50
RECENT, SAMPLES = 3, 150
"""Batches of the second half of the run that were read, and samples in them."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in learnings(case):
        for head in learning.heads:
            loss = learning.loss_of(head)
            if loss is None or loss.count < STEPS or (case.outcome == "running" and not _settled(loss)):
                continue
            if _collapsed(head) and not _ranks(head, loss):
                yield _finding(learning, head, loss)
                break


def _settled(loss: Loss) -> bool:
    """A training that goes on may yet learn the rare classes."""
    return loss.count >= LONG and curves.flat(loss)


def _collapsed(head: Head) -> bool:
    target, given = head.target, head.prediction
    if not 2 <= target.get("classes", 0) <= CLASSES or head.weighted:
        return False
    if given.get("recent", 0) < RECENT or given.get("samples", 0) < SAMPLES:
        return False
    return given["share"] >= ALL and given["top"] == target.get("of") and _imbalance(head) > IMBALANCE


def _imbalance(head: Head) -> float:
    most = float(head.target["majority"])
    least = float(head.target.get("minority", 1 - most))
    return most / least if least > 0 else 0.0


def _ranks(head: Head, loss: Loss) -> bool:
    best = curves.constant(head)
    if best is None:  # weighted, focal: it cannot be compared
        return curves.ended(loss) < 0.7 * curves.first(loss)
    return curves.ended(loss) < 0.8 * best


def _finding(learning: Learning, head: Head, loss: Loss) -> Finding:
    target, given = head.target, head.prediction
    best = curves.constant(head)
    beside = f"; a constant prediction gives {best:.3g}" if best is not None else ""
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="warning",
        confidence=0.85,
        title=f"The model gives class {given['top']} for everything, which {target['majority']:.0%} of the samples are",
        evidence=(
            f"{given['share']:.1%} of the predictions in the last {given['recent']} batches read are class "
            f"{given['top']}; of {target['count']:,} targets it is {target['majority']:.1%}, the rarest class "
            f"{target.get('minority', 1 - target['majority']):.2%}",
            f"the loss is {curves.ended(loss):.3g} after {loss.count:,} steps{beside}",
        ),
        where=learning.where(head.site),
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
