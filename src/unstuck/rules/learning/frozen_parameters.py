"""frozen-parameters: the optimizer's weights are frozen, and there is nothing else to train.

What it sees
    None of the optimizer's parameters require a gradient, or nothing but a few biases and scales do, while the weights
    are still the random ones the model started with. Or a training of several stages ended with most of the model
    frozen and random in all of them, and the loss no better than a constant prediction. Or a second network that is
    meant to follow the one that learns (a target network, an average of its weights) stays what it was, and the line
    that should change it only gives a name to the result: `tp = (1 - tau) * tp + tau * p` in a loop.

Why it matters
    The optimizer steps, and changes nothing that matters. Targets from a network that never learns lead nowhere.

Evidence
    How many of the optimizer's parameters are frozen, which are left, and that the frozen weights are still random. Of
    a second network: the line, and for how many steps none of its parameters has changed.

Fix
    Freeze before the new layers are added, or unfreeze (`requires_grad_(True)`) what should train. Change the weights
    of a second network in place: `tp.lerp_(p, tau)` under `torch.no_grad()`.

When it is wrong
    Training a new head on a frozen body, or only biases and norms of a pretrained model, is fine and not reported:
    there the last weights require gradients, or the frozen ones are not random. A second network is reported only where
    both are known: the line, whose result nothing reads, and weights that stay; where another line copies the weights
    now and then, they do not.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import BuiltOptimizer, Learning, Parameter, StillCopy
from unstuck.rules.rule import Rule
from unstuck.rules.training import counted, layer_names, line, main_loss, random_matrices, share_of_constant, where

MIN_STEPS = 8
MIN_STEPS_SOME_LEFT = 60  # layers may be unfrozen one after the other
MIN_STEPS_STILL = 100  # a copy may be brought up to date now and then
MIN_RANDOM_SHARE = 0.7  # of the frozen matrices
MIN_LOSS_VALUES = 100
MIN_LOSS_SHARE = 0.95  # of the loss of a constant prediction: what is left to train learns nothing


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        copy = learning.still_copy
        if copy is not None and learning.steps - copy.since >= MIN_STEPS_STILL and _learns(learning):
            yield _never_follows(learning, copy)
        for optimizer in learning.built:
            held = [parameter for parameter in learning.parameters if parameter.held == optimizer.number]
            frozen = [parameter for parameter in held if not parameter.trainable and not parameter.moved]
            left = [parameter for parameter in held if parameter.trainable]
            min_steps = MIN_STEPS_SOME_LEFT if left and case.outcome != "finished" else MIN_STEPS
            if not frozen or optimizer.steps < min_steps:
                continue
            if _useless(optimizer, frozen, left) or (case.outcome == "finished" and _in_vain(learning, frozen, left)):
                yield _finding(learning, optimizer, frozen, left)


def _learns(learning: Learning) -> bool:
    return any(parameter.moved for parameter in learning.parameters if parameter.in_graph)


def _never_follows(learning: Learning, copy: StillCopy) -> Finding:
    other = f"`{copy.other}`" if copy.other else "the network that learns"
    lost = f"{line(copy.site)} only gives the new weights to the loop's variable"
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"`{copy.name}` never follows {other}: {lost}",
        evidence=(
            f"{line(copy.site)} computes new weights for `{copy.name}`, gives them to the variable of its loop, and "
            "nothing reads that",
            f"none of its {copy.parameters:,} parameters has changed from step {copy.since:,} to {learning.steps:,}, "
            f"while {other} learns",
        ),
        where=where(learning, copy.site),
        fix="Change the weights in place, under `torch.no_grad()`: `tp.lerp_(p, tau)`, or `tp.copy_(new)`. An "
        "assignment to the loop's variable leaves the weight as it was.",
    )


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
