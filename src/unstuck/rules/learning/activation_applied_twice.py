"""activation-applied-twice: the loss applies a softmax or sigmoid to the output of another one.

What it sees
    Right before the loss function there is the activation that the loss function applies itself: a softmax or sigmoid
    before cross entropy, a sigmoid before `binary_cross_entropy_with_logits`.

Why it matters
    The first activation gives values between 0 and 1, and the second turns these into nearly equal probabilities: the
    loss has a floor far above 0, and gradients are small everywhere, most of all where the model is sure.

Evidence
    The two operations, read from the graph of the loss, and the floor that follows from them.

Fix
    Pass the output of the last layer to the loss function as it is; apply the activation only where probabilities are
    needed, outside the loss.

When it is wrong
    Two log-softmaxes in a row do no harm and are not reported; nor are targets that went through a softmax
    (distillation): only what has a gradient counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import e, log

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning, LossHead
from unstuck.rules.rule import Rule
from unstuck.rules.training import first_by_loss_function, loss_of, now, where

NAMES = {
    "cross_entropy": "cross entropy",
    "log_softmax": "cross entropy",
    "bce_logits": "binary cross entropy with logits",
}


def decide(case: Case) -> Iterable[Finding]:
    return first_by_loss_function(case, _judge)


def _judge(learning: Learning, head: LossHead) -> Finding | None:
    if head.op == "bce_logits":
        return _finding(learning, head) if head.after == "sigmoid" else None
    twice = head.op in ("cross_entropy", "log_softmax") and head.after in ("softmax", "sigmoid")
    return _finding(learning, head) if twice and _classes(head) > 1 else None


def _classes(head: LossHead) -> int:
    dim = head.dim if head.dim is not None else -1
    return head.shape[dim] if head.shape and -len(head.shape) <= dim < len(head.shape) else 0


def _finding(learning: Learning, head: LossHead) -> Finding:
    binary = head.op == "bce_logits"
    own = "sigmoid" if binary else "softmax"
    if binary:
        floor = (
            f"so no probability is below 0.5 or above 0.73: the loss cannot go below {log(2):.3g} where the target is "
            f"0, nor below {log(1 + 1 / e):.3g} where it is 1"
        )
    else:
        lowest = log(1 + (_classes(head) - 1) / e)  # 1 for the right class, 0 for the others
        floor = f"with {_classes(head)} classes the loss cannot go below {lowest:.3g}, however right the model is"
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"The output goes through a {head.after}, and the loss function applies its own {own} to that",
        evidence=(
            f"in {head.times:,} sampled steps, {NAMES[head.op]} gets the output of a {head.after}, and applies a {own} "
            "itself",
            floor + now(loss_of(learning, head)),
        ),
        where=where(learning, head.site),
        fix=f"Pass the output of the last layer to the loss without the {head.after}: take it out of the model, and "
        "apply it only where you need probabilities.",
    )


RULE = Rule(
    "activation-applied-twice",
    "learning",
    decide,
    explains=frozenset(("predicts-one-class", "learning-rate-too-low")),
    gathers=True,
)
