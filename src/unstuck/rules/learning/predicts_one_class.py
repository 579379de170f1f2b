"""predicts-one-class: the model predicts the most frequent class for everything.

What it sees
    In all the recent batches that were read, (nearly) every prediction is one class: the one that is more than ten
    times as frequent as the rarest.

Why it matters
    With 97 % of one class, always predicting it is right 97 % of the time, and a loss averaged over samples gives the
    few others too little weight. The accuracy looks good; the model has learned nothing.

Evidence
    The share of predictions and of targets with that class, the number of batches read; the loss compared with that of
    a constant prediction.

Fix
    Weight the classes in the loss (`weight=`, `pos_weight=`) or draw the rare ones more often (WeightedRandomSampler).

When it is wrong
    In early steps every model does that: it is reported only after some hundred steps, and not where the loss is well
    below that of a constant prediction (then the ranking is right and only the threshold is not).
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning, Loss, LossHead
from unstuck.rules.rule import Rule
from unstuck.rules.training import constant_loss, end_mean, first_value, is_flat, loss_of, where

MIN_LOSS_VALUES = 100  # before that every model predicts one class
MIN_LOSS_VALUES_RUNNING = 600  # and flat: a run that goes on may yet learn the rare classes
MIN_PREDICTED_SHARE = 0.995
MIN_IMBALANCE = 10.0  # the most frequent class compared with the rarest
MAX_CLASSES = 50  # of more, the rarest is rare in any case
MIN_BATCHES, MIN_SAMPLES = 3, 150  # read in the second half of the run


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for head in learning.heads:
            loss, rarest = loss_of(learning, head), _rarest(head)
            if loss is None or rarest is None or loss.count < MIN_LOSS_VALUES or _ranks_well(head, loss):
                continue
            settled = loss.count >= MIN_LOSS_VALUES_RUNNING and is_flat(loss)
            if settled or case.outcome != "running":
                yield _finding(learning, head, loss, rarest)
                break


def _rarest(head: LossHead) -> float | None:
    """Share of the rarest class, where everything is predicted to be the most frequent one."""
    target, predicted = head.target, head.prediction
    if target.classes is None or not 2 <= target.classes <= MAX_CLASSES or target.majority is None or head.weighted:
        return None
    if predicted.share is None or predicted.recent < MIN_BATCHES or predicted.samples < MIN_SAMPLES:
        return None
    rarest = 1 - target.majority if target.minority is None else target.minority
    imbalanced = 0 < MIN_IMBALANCE * rarest < target.majority
    one_class = predicted.share >= MIN_PREDICTED_SHARE and predicted.top == target.of
    return rarest if imbalanced and one_class else None


def _ranks_well(head: LossHead, loss: Loss) -> bool:
    best = constant_loss(head)
    if best is None:  # weighted or focal: it cannot be compared
        return end_mean(loss) < 0.7 * first_value(loss)
    return end_mean(loss) < 0.8 * best


def _finding(learning: Learning, head: LossHead, loss: Loss, rarest: float) -> Finding:
    predicted, majority, best = head.prediction, head.target.majority, constant_loss(head)
    constant = f"; a constant prediction gives {best:.3g}" if best is not None else ""
    return RULE.finding(
        severity="warning",
        confidence=0.85,
        title=f"The model predicts class {predicted.top} for everything; {majority:.0%} of the samples are that class",
        evidence=(
            f"{predicted.share:.1%} of the predictions in the last {predicted.recent} batches read are class "
            f"{predicted.top}; of {head.target.count:,} targets {majority:.1%} are, and {rarest:.2%} the rarest class",
            f"the loss is {end_mean(loss):.3g} after {loss.count:,} steps{constant}",
        ),
        where=where(learning, head.site),
        fix="Weight the rare classes in the loss (`weight=` of CrossEntropyLoss, `pos_weight=` of BCEWithLogitsLoss), "
        "or draw them more often with a WeightedRandomSampler.",
    )


RULE = Rule("predicts-one-class", "learning", decide, explains=frozenset(("labels-imbalanced",)), gathers=True)
