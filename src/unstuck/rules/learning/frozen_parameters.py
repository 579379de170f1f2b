"""frozen-parameters: the optimizer's weights are frozen, and there is nothing else to train.

What it sees
    None of the optimizer's parameters require a gradient, or nothing but a few biases and scales do, while the weights
    are still the random ones the model started with. Or a training of several stages ended with most of the model
    frozen and random in all of them, and the loss no better than a constant prediction.

Why it matters
    The optimizer steps, and changes nothing that matters.

Evidence
    How many of the optimizer's parameters are frozen, which are left, and that the frozen weights are still random.

Fix
    Freeze before the new layers are added, or unfreeze (`requires_grad_(True)`) what should train.

When it is wrong
    Training a new head on a frozen body, or only biases and norms of a pretrained model, is fine and not reported:
    there the last weights require gradients, or the frozen ones are not random.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import BuiltOptimizer, Learning, Parameter
from unstuck.rules.rule import Rule
from unstuck.rules.training import counted, layer_names, line, main_loss, random_matrices, share_of_constant, where

MIN_STEPS = 8
MIN_STEPS_SOME_LEFT = 60  # layers may be unfrozen one after the other
MIN_RANDOM_SHARE = 0.7  # of the frozen matrices
MIN_LOSS_VALUES = 100
MIN_LOSS_SHARE = 0.95  # of the loss of a constant prediction: what is left to train learns nothing


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for optimizer in learning.built:
            held = [parameter for parameter in learning.parameters if parameter.held == optimizer.number]
            frozen = [parameter for parameter in held if not parameter.trainable and not parameter.moved]
            left = [parameter for parameter in held if parameter.trainable]
            min_steps = MIN_STEPS_SOME_LEFT if left and case.outcome != "finished" else MIN_STEPS
            if not frozen or optimizer.steps < min_steps:
                continue
            if _useless(optimizer, frozen, left) or (case.outcome == "finished" and _in_vain(learning, frozen, left)):
                yield _finding(learning, optimizer, frozen, left)


def _in_vain(learning: Learning, frozen: list[Parameter], left: list[Parameter]) -> bool:
    """Most of the model stayed random from the first stage to the last, and the rest could not learn on it."""
    weights, loss = random_matrices(frozen), main_loss(learning)
    if len(learning.built) < 2 or loss is None or loss.nonfinite or loss.count < MIN_LOSS_VALUES:
        return False
    fresh = sum(weight.numel for weight in weights if weight.fresh)
    share = share_of_constant(learning, loss)
    return fresh > sum(parameter.numel for parameter in left) and share is not None and share > MIN_LOSS_SHARE


def _useless(optimizer: BuiltOptimizer, frozen: list[Parameter], left: list[Parameter]) -> bool:
    if not optimizer.trainable and not left:
        return True
    weights = random_matrices(frozen)
    if not weights or sum(weight.fresh for weight in weights) < MIN_RANDOM_SHARE * len(weights):
        return False
    return not any(len(parameter.shape) > 1 for parameter in left)


def _finding(learning: Learning, optimizer: BuiltOptimizer, frozen: list[Parameter], left: list[Parameter]) -> Finding:
    rest = f"only {counted(left)} of {layer_names(left, 3)} are left to train" if left else "nothing is left to train"
    share = sum(p.numel for p in frozen) / max(sum(p.numel for p in frozen + left), 1)
    still_random = any(parameter.fresh for parameter in frozen)
    return RULE.finding(
        severity="error",
        confidence=0.9 if left else 0.95,
        title=f"{share:.0%} of the optimizer's parameters are frozen: {rest}",
        evidence=(
            f"{counted(frozen)} of the {optimizer.kind} built at {line(optimizer.site)} have requires_grad=False: "
            f"{layer_names(frozen, 6)}",
            f"none of them moved in {optimizer.steps:,} steps; {rest}",
            "the frozen weights are still the random ones the model started with" if still_random else "",
        ),
        where=where(learning, optimizer.site),
        fix="Freeze only the old part, and before the new layers are added; call `requires_grad_(True)` on what should "
        "train.",
    )


RULE = Rule(
    "frozen-parameters",
    "learning",
    decide,
    explains=frozenset(("graph-cut", "optimizer-never-steps", "learning-rate-too-low")),
    gathers=True,
)
