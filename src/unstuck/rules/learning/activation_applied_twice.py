"""activation-applied-twice: the loss applies a softmax or sigmoid to what already went through one.

What it sees
    Right in front of the loss function there is the activation that the loss function applies itself: a softmax or
    sigmoid before cross entropy, a sigmoid before `binary_cross_entropy_with_logits`.

Why it matters
    What comes out of the first activation lies between 0 and 1. The second one makes nearly equal probabilities of
    that: the loss has a floor far above 0, and the gradients are small everywhere, most of all where the model is sure.

Evidence
    The two operations, read from the graph of the loss, the range of what went in, and the floor that follows from it.

Fix
    Hand the loss function the output of the last layer as it is; apply the activation only where probabilities are
    wanted, outside the loss.

When it is wrong
    Two log-softmaxes in a row do no harm and are not reported; nor are targets that went through a softmax
    (distillation): only what has a gradient is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import e, log

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, LossHead
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import loss_of, where
from unstuck.rules.rule import Rule

CALLED = {
    "cross_entropy": "cross entropy",
    "log_softmax": "cross entropy",
    "bce_logits": "binary cross entropy with logits",
}
TIMES = 3
"""Graphs read that end so."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for head in learning.heads:
            if head.times >= TIMES and _twice(head):
                yield _finding(learning, head)
                break


def _twice(head: LossHead) -> bool:
    if head.op in ("cross_entropy", "log_softmax"):
        return head.after in ("softmax", "sigmoid") and _classes(head) > 1
    return head.op == "bce_logits" and head.after == "sigmoid"


def _classes(head: LossHead) -> int:
    dim = head.dim if head.dim is not None else -1
    return head.shape[dim] if head.shape and -len(head.shape) <= dim < len(head.shape) else 0


def _floor(head: LossHead) -> float:
    """The loss where every output is as right as it can be: 1 for the class, 0 for the others."""
    return log(1 + 1 / e) if head.op == "bce_logits" else log(1 + (_classes(head) - 1) / e)


def _finding(learning: Learning, head: LossHead) -> Finding:
    inner = "softmax" if head.op != "bce_logits" else "sigmoid"
    loss = loss_of(learning, head)
    now = f"; it is {curves.ended(loss):.3g} after {loss.count:,} steps" if loss is not None and loss.points else ""
    floor = "" if head.op == "bce_logits" else f"with {_classes(head)} classes "
    evidence = [
        f"in {head.times:,} of the graphs read, {CALLED[head.op]} was computed on the output of a {head.after}, and "
        f"applies a {inner} itself",
    ]
    if head.op == "bce_logits":
        evidence.append(
            f"the model can then give no probability below 0.5 or above 0.73: where the target is 0 the loss cannot go "
            f"below {log(2):.3g}, where it is 1 not below {_floor(head):.3g}{now}"
        )
    else:
        evidence.append(f"{floor}the loss then cannot go below {_floor(head):.3g}, however right the model is{now}")
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"A {head.after} is applied to the output, and the loss function applies its own {inner} to that",
        evidence=tuple(evidence),
        where=where(learning, head.site),
        fix=Fix(
            f"Hand the loss the output of the last layer without the {head.after}: take it out of the model, and apply "
            f"it only where you want to read probabilities."
        ),
        seen_by="flight",
    )


RULE = Rule(
    "activation-applied-twice",
    "learning",
    decide,
    explains=frozenset(("predicts-one-class", "no-better-than-constant", "still-improving", "learning-rate-too-low")),
    gathers=True,
)
