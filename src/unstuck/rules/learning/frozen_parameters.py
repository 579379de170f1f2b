"""frozen-parameters: the optimizer has weights that want no gradient, and nothing else to train.

What it sees
    Of what the optimizer was given nothing, or nothing but a few biases and scales, wants a gradient, while the weights
    are still the random ones the model was made with.

Why it matters
    The steps are made, and change nothing that matters.

Evidence
    How many of the parameters that the optimizer has are frozen, which are left, and that the frozen weights are as
    random as at the start.

Fix
    Freeze before the new layers are put in, or unfreeze (`requires_grad_(True)`) what is to be trained.

When it is wrong
    Training a new head on a frozen body, or only biases and norms of a model that was trained before, is fine and not
    reported: there the last weights want gradients, or the frozen ones are not random.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import BuiltOptimizer, Learning, Parameter
from unstuck.rules.learning.measured import where
from unstuck.rules.learning.ownership import count, layers, line, matrices
from unstuck.rules.rule import Rule

STEPS = 8
"""Of the optimizer."""
PATIENT = 60
"""Steps, where a little is left to train: layers may be unfrozen one after the other."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for optimizer in learning.built:
            held = [each for each in learning.parameters if each.held == optimizer.number]
            frozen = [each for each in held if not each.trainable and not each.moved]
            left = [each for each in held if each.trainable]
            enough = PATIENT if left and case.outcome != "finished" else STEPS
            if frozen and optimizer.steps >= enough and _useless(optimizer, frozen, left):
                yield _finding(learning, optimizer, frozen, left)


def _useless(optimizer: BuiltOptimizer, frozen: list[Parameter], left: list[Parameter]) -> bool:
    if not optimizer.trainable and not left:
        return True
    weights = matrices(frozen)
    if not weights or sum(each.fresh for each in weights) < 0.7 * len(weights):
        return False
    return not any(len(each.shape) > 1 for each in left)


def _finding(learning: Learning, optimizer: BuiltOptimizer, frozen: list[Parameter], left: list[Parameter]) -> Finding:
    kept = f"only {count(left)} of {layers(left, 3)} are left to train" if left else "nothing is left to train"
    whole = sum(each.numel for each in frozen + left)
    share = sum(each.numel for each in frozen) / max(whole, 1)
    return RULE.finding(
        severity="error",
        confidence=0.9 if left else 0.95,
        title=f"{share:.0%} of what the optimizer has is frozen: {kept}",
        evidence=(
            f"{count(frozen)} of the {optimizer.kind} built at {line(optimizer.site)} have requires_grad=False: "
            f"{layers(frozen, 6)}",
            f"{optimizer.steps:,} steps, and none of them has moved; {kept}",
            *(("the frozen weights are random, as the model was made with",) if any(e.fresh for e in frozen) else ()),
        ),
        where=where(learning, optimizer.site),
        fix=Fix(
            "Freeze the old part only, and before the new layers are put in; call `requires_grad_(True)` on what is to "
            "be trained."
        ),
        seen_by="flight",
    )


RULE = Rule(
    "frozen-parameters",
    "learning",
    decide,
    explains=frozenset(("graph-cut", "no-better-than-constant", "optimizer-never-steps", "learning-rate-too-low")),
    gathers=True,
)
