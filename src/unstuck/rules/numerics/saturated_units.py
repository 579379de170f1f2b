"""saturated-units: sigmoids or tanhs driven so far that they are flat.

What it sees
    A sigmoid or tanh inside the model most of whose inputs lie where it hardly changes any more (beyond 5 and 3), from
    the first batches on.

Why it matters
    Where an activation is flat its gradient is almost 0: the layers in front of it learn very slowly or not at all.

Evidence
    The layer, the share of its values that are flat, at the first batches and lately; the course of the loss.

Fix
    Scale the inputs to about 1, begin with smaller weights, put a normalization in front, or use ReLU.

When it is wrong
    Gates (a result that is multiplied with another one) and the last activation in front of the loss are meant to be
    driven far, and are left out; so are units that become flat only as the training goes on.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Activation, Learning
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import layer_of, main_loss, median_gradient, saturated, where
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        last = max((each.place for each in learning.activations), default=-1)
        final = any(head.after in ("sigmoid", "tanh") for head in learning.heads) or any(
            head.op in ("bce", "bce_logits") for head in learning.heads
        )
        flat = [each for each in learning.activations if saturated(each) and not (final and each.place == last)]
        if flat:
            yield _finding(learning, max(flat, key=lambda each: each.late_saturated))


def _finding(learning: Learning, each: Activation) -> Finding:
    layer = f"`{each.name}`" if each.name else f"activation {each.place + 1} of the forward pass"
    loss = main_loss(learning)
    limit = 5 if each.kind == "sigmoid" else 3
    return RULE.finding(
        severity="warning",
        confidence=0.75,
        title=f"the {each.kind} behind {layer} is flat for {each.late_saturated:.0%} of its values",
        evidence=(
            f"{each.early_saturated:.0%} of what the {each.kind} behind {layer} was given in the first batches lay "
            f"beyond ±{limit}, and {each.late_saturated:.0%} lately ({each.batches} batches looked at)",
            *_gradient(learning, each),
            *([curves.course(loss)] if loss is not None and loss.count and not loss.nonfinite else []),
        ),
        where=where(learning, each.site or (loss.site if loss is not None else None)),
        fix=Fix(
            "Scale the inputs of that layer to about 1 (or put a LayerNorm in front), or begin with smaller weights."
        ),
        seen_by="flight",
    )


def _gradient(learning: Learning, each: Activation) -> list[str]:
    for one in learning.parameters:
        if each.name and layer_of(one) == each.name and len(one.shape) > 1 and one.weights and one.weights[0] > 0:
            ratio = median_gradient(one) / one.weights[0]
            if ratio < 1e-3:
                return [f"the gradient of `{one.name}` is {ratio:.1e} of the size of its weights"]
    return []


RULE = Rule(
    "saturated-units",
    "numerics",
    decide,
    explains=frozenset(("vanishing-gradient", "no-better-than-constant")),
    gathers=True,
)
