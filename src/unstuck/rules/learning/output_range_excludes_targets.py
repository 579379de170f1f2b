"""output-range-excludes-targets: the last activation cannot give what the targets ask for.

What it sees
    The loss of a regression is computed right after a ReLU, sigmoid, tanh or softmax, and a good part of the targets
    lies where that cannot reach. Or logits that went through a ReLU, so that no probability is below one half.

Why it matters
    The model gets as close as the activation allows and stays there: at the edge of its range, where a sigmoid or tanh
    is flat and a ReLU gives no gradient at all.

Evidence
    The activation and its range, the range of the targets, the share of them outside, and the floor that this sets.

Fix
    No activation after the last layer, or targets scaled into its range.

When it is wrong
    Few targets a little outside (noise around 0 behind a ReLU) are not reported: less than 5 % of them, or a floor that
    is small beside their variance.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, LossHead, OutOfReach
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import loss_of, where
from unstuck.rules.rule import Rule

RANGES = {"relu": "0 and above", "sigmoid": "between 0 and 1", "softmax": "between 0 and 1", "tanh": "between −1 and 1"}
TIMES = 3
"""Graphs read that end so."""
SHARE = 0.05
"""Of the targets that may lie outside, and of their variance that the floor may be: noise around 0 behind a ReLU."""
COUNT = 32
"""Targets read: of fewer a share of 5 % says nothing."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for head in learning.heads:
            if head.times < TIMES or head.broadcast:
                continue
            if head.op == "bce_logits" and head.after == "relu":
                yield _relu_logits(learning, head)
                break
            if head.op in curves.MEASURES and _one_column(head):
                yield _always_one(learning, head)
                break
            if head.op in curves.MEASURES and _excluded(head):
                yield _finding(learning, head)
                break


def _beyond(head: LossHead) -> OutOfReach:
    kind = "sigmoid" if head.after == "softmax" else head.after
    return head.target.beyond.get(kind) or OutOfReach()


def _excluded(head: LossHead) -> bool:
    if head.after not in RANGES or head.target.count < COUNT or head.target.sd is None:
        return False
    beyond = _beyond(head)
    return beyond.share >= SHARE and beyond.floor >= SHARE * head.target.sd**2 and beyond.floor > 1e-4


def _one_column(head: LossHead) -> bool:
    return (
        head.after == "softmax"
        and head.after_dim is not None
        and len(head.after_shape) > 1
        and head.after_shape[head.after_dim] == 1
    )


def _finding(learning: Learning, head: LossHead) -> Finding:
    beyond, number = _beyond(head), curves.number
    loss = loss_of(learning, head)
    evidence = [
        f"the loss is computed on the output of a {head.after}, which is {RANGES[head.after]}; the targets run from "
        f"{number(head.target.min)} to {number(head.target.max)}, {beyond.share:.0%} of them outside",
    ]
    if head.op in ("mse", "squared") and head.bare and loss is not None and loss.points:
        evidence.append(
            f"no output in that range brings the loss below about {number(beyond.floor)}; it is "
            f"{number(curves.ended(loss))} after {loss.count:,} steps"
        )
    return RULE.finding(
        severity="error",
        confidence=0.93,
        title=f"The model ends in a {head.after} (output {RANGES[head.after]}), and {beyond.share:.0%} of the "
        "targets lie outside of that",
        evidence=tuple(evidence),
        where=where(learning, head.site),
        fix=Fix(f"Take the {head.after} after the last layer away, or scale the targets into its range."),
        seen_by="flight",
    )


def _always_one(learning: Learning, head: LossHead) -> Finding:
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title="The model ends in a softmax over one single number: its output is always 1",
        evidence=(
            f"softmax with dim={head.after_dim} on a tensor of shape {list(head.after_shape)}, whose gradient is 0",
        ),
        where=where(learning, head.site),
        fix=Fix("Take the softmax away, or a sigmoid for one probability."),
        seen_by="flight",
    )


def _relu_logits(learning: Learning, head: LossHead) -> Finding:
    return RULE.finding(
        severity="error",
        confidence=0.9,
        title="The logits go through a ReLU: no probability below 0.5 can come out, and half of the targets are 0",
        evidence=(
            f"binary cross entropy with logits is computed on the output of a relu, in {head.times:,} of the graphs "
            "read; a logit of 0 or more is a probability of 0.5 or more",
        ),
        where=where(learning, head.site),
        fix=Fix("Take the ReLU after the last layer away."),
        seen_by="flight",
    )


RULE = Rule(
    "output-range-excludes-targets",
    "learning",
    decide,
    explains=frozenset(
        (
            "target-scale",
            "predicts-one-class",
            "no-better-than-constant",
            "still-improving",
            "wrong-loss-for-target",
            "loss-oscillates",
        )
    ),
    gathers=True,
)
