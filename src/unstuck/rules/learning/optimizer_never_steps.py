"""optimizer-never-steps: gradients are computed, and no optimizer ever uses them.

What it sees
    Backward passes, and an optimizer for the parameters they reach whose `step` never ran; or whose steps found no
    gradient, because the gradients were cleared between `backward` and `step`.

Why it matters
    No weight ever changes: the loss stays where it was at the start, and the whole run is wasted.

Evidence
    The number of backward passes and steps, whether the gradients were cleared in between, and that no weight moved.

Fix
    Call `optimizer.step()` after `backward()`, before the gradients are cleared.

When it is wrong
    Accumulating over very many batches looks the same until the first step; so during the run this is reported only
    where the gradients were thrown away, or after hundreds of backward passes. Weights that the script updates by hand
    move, and are not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import BuiltOptimizer, Learning, Parameter
from unstuck.rules.rule import Rule
from unstuck.rules.training import counted, line, loss_site, where

MIN_BACKWARDS_FINISHED = 10
MIN_BACKWARDS_CLEARED = 20  # of a run that goes on and clears its gradients each time
MIN_BACKWARDS = 400  # of a run that may still be accumulating
MIN_BACKWARDS_OTHER = 100  # where another optimizer steps: this one may be meant for later
MIN_STEPS = 10  # without a gradient


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        if (learning.scaler is not None and learning.scaler.updates) or learning.leaf_losses:
            continue
        for optimizer in learning.built:
            held = [p for p in learning.parameters if p.held == optimizer.number and p.in_graph]
            if not held or any(parameter.moved for parameter in held):
                continue
            if not optimizer.steps and _long_enough(case, learning, optimizer):
                yield _no_step(learning, optimizer, held)
            elif optimizer.steps >= MIN_STEPS and _cleared_too_early(held):
                yield _no_gradient(learning, optimizer, held)


def _long_enough(case: Case, learning: Learning, optimizer: BuiltOptimizer) -> bool:
    finished = case.outcome == "finished"
    if any(other.steps for other in learning.built):
        return finished and learning.backwards >= MIN_BACKWARDS_OTHER
    if finished:
        return learning.backwards >= MIN_BACKWARDS_FINISHED
    cleared = optimizer.clears >= 0.5 * learning.backwards
    return learning.backwards >= (MIN_BACKWARDS_CLEARED if cleared else MIN_BACKWARDS)


def _cleared_too_early(held: list[Parameter]) -> bool:
    seen = [parameter for parameter in held if parameter.seen >= 5]
    return bool(seen) and all(parameter.none + parameter.zero == parameter.seen for parameter in seen)


def _no_step(learning: Learning, optimizer: BuiltOptimizer, held: list[Parameter]) -> Finding:
    site = loss_site(learning) or optimizer.site
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"{learning.backwards:,} backward passes, but the optimizer never makes a step",
        evidence=(
            f"{learning.backwards:,} backward passes at {line(site)}, and 0 steps of the {optimizer.kind} built at "
            f"{line(optimizer.site)}",
            f"none of its {counted(held)} has moved",
            f"its gradients were cleared {optimizer.clears:,} times, unused" if optimizer.clears else "",
        ),
        where=where(learning, site),
        fix=f"Call `optimizer.step()` (with the parentheses) after the backward pass at {line(site)}; if it is under "
        "an `if`, that condition is never true.",
    )


def _no_gradient(learning: Learning, optimizer: BuiltOptimizer, held: list[Parameter]) -> Finding:
    site = loss_site(learning) or optimizer.site
    seen = max(parameter.seen for parameter in held)
    return RULE.finding(
        severity="error",
        confidence=0.93,
        title="The gradients are gone when the optimizer steps: no weight ever moves",
        evidence=(
            f"in all {seen} steps observed, none of {counted(held)} had a gradient left, though {learning.backwards:,} "
            f"backward passes at {line(site)} reach them",
            f"zero_grad was called {optimizer.clears or learning.clears:,} times for {optimizer.steps:,} steps of this "
            f"{optimizer.kind}, and no weight has moved",
        ),
        where=where(learning, site),
        fix="Clear the gradients before `backward()` or after `step()`, not between the two.",
    )


RULE = Rule(
    "optimizer-never-steps",
    "learning",
    decide,
    explains=frozenset(("learning-rate-too-low", "vanishing-gradient")),
    gathers=True,
)
