"""loss-broadcasts: prediction and target have different shapes, so each prediction is compared with every target.

What it sees
    Between the prediction and the loss the shape grows: a prediction of shape [32, 1] and a target of shape [32] give
    differences of shape [32, 32].

Why it matters
    Every prediction is pulled towards the targets of all samples, that is, to their mean: the model learns to predict
    the same for everything, with a loss that looks like the variance of the targets.

Evidence
    Both shapes and that of the difference, from the graph of the loss. The variance of the targets, where the loss is a
    square and they are known; else how the loss went.

Fix
    Give both the same shape: `prediction.squeeze(1)` or `target.unsqueeze(1)`.

When it is wrong
    Losses that compare everything with everything on purpose: distances between outputs of the model are not
    reported, nor is a target that is one number for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning, LossHead
from unstuck.rules.rule import Rule
from unstuck.rules.training import course, first_by_loss_function, loss_of, now, number, where

ELEMENTWISE_OPS = ("mse", "smooth_l1", "huber")  # torch's own: they expect as many predictions as targets

SQUARES = ("mse", "squared")


def decide(case: Case) -> Iterable[Finding]:
    return first_by_loss_function(case, _judge)


def _judge(learning: Learning, head: LossHead) -> Finding | None:
    if head.broadcast is None:
        return None
    prediction, broadcast = head.broadcast
    if _crossed(prediction, broadcast) or (head.op in ELEMENTWISE_OPS and _too_few_outputs(prediction, broadcast)):
        return _finding(learning, head, prediction, broadcast)
    return None


def _crossed(prediction: list[int], broadcast: list[int]) -> bool:
    """Samples of the prediction against samples of the target: [N, 1] and [N] give [N, N]."""
    samples = max(prediction, default=0)
    return samples > 1 and prod(broadcast) >= prod(prediction) * samples and broadcast.count(samples) >= 2


def _too_few_outputs(prediction: list[int], broadcast: list[int]) -> bool:
    """One output for several targets."""
    same_rank = len(prediction) == len(broadcast)
    return same_rank and prod(prediction) > 1 and prediction[-1] == 1 and broadcast[-1] > 1


def _finding(learning: Learning, head: LossHead, prediction: list[int], broadcast: list[int]) -> Finding:
    crossed, target = _crossed(prediction, broadcast), _target_shape(head, prediction, broadcast)
    loss, deviation = loss_of(learning, head), head.target.sd
    how_it_went = course(loss) if loss is not None and loss.points else ""
    if crossed and how_it_went and deviation and head.op in SQUARES:
        how_it_went = f"the loss cannot get far below the variance of the targets, {number(deviation**2)}{now(loss)}"
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"The loss broadcasts a prediction of shape {prediction} and a target of shape {target} to {broadcast}",
        evidence=(
            f"prediction {prediction} and target {target} become {broadcast}: {prod(broadcast):,} differences for "
            f"{prod(prediction):,} predictions, in {head.times:,} sampled steps",
            how_it_went,
        ),
        where=where(learning, head.site),
        fix="Give both the same shape before the loss: `prediction.squeeze(-1)`, or `target.unsqueeze(-1)`."
        if crossed
        else f"Let the last layer output {broadcast[-1]} values per sample, as many as the target has.",
    )


def _target_shape(head: LossHead, prediction: list[int], broadcast: list[int]) -> list[int]:
    """Before it was broadcast. Leading ones of an expanded target were added by that."""
    expanded = head.target.expanded
    while len(expanded) > 1 and expanded[0] == 1:
        expanded = expanded[1:]
    if expanded:
        return expanded
    if not _crossed(prediction, broadcast):
        return broadcast
    return [max(prediction)] if len(prediction) > 1 else [max(prediction), 1]


RULE = Rule(
    "loss-broadcasts",
    "learning",
    decide,
    explains=frozenset(("target-scale", "wrong-loss-for-target", "loss-oscillates")),
    gathers=True,
)
