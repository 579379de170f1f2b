"""optimizer-never-steps: gradients are computed, and no optimizer makes a step with them.

What it sees
    Backward passes, and an optimizer that was built for the parameters they reach, but whose `step` never ran; or whose
    steps found no gradient, because they were cleared between `backward` and `step`.

Why it matters
    It does not stop, but no weight ever changes: the loss stays where it was at the start.

Evidence
    How many backward passes there were, how many steps, whether the gradients were cleared in between, and that no
    weight has moved.

Fix
    Call `optimizer.step()` after `backward()`, before the gradients are cleared.

When it is wrong
    Accumulating over very many batches looks alike until the first step; while the run goes on this is said only where
    the gradients were thrown away, or after hundreds of backward passes. Weights that are written by hand move, and are
    not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import BuiltOptimizer, Learning, Parameter
from unstuck.rules.learning.measured import main_loss, where
from unstuck.rules.learning.ownership import count, line
from unstuck.rules.rule import Rule

ENDED = 10
"""Backward passes of a run that came to its end without a step."""
THROWN_AWAY = 20
"""… and of one that goes on, whose gradients are cleared each time."""
PATIENT = 400
"""… and of one that may still be accumulating."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        if (learning.scaler is not None and learning.scaler.updates) or learning.leaf_losses:
            continue
        for optimizer in learning.built:
            held = [each for each in learning.parameters if each.held == optimizer.number and each.in_graph]
            if held and not any(each.moved for each in held):
                yield from _never_moved(case, learning, optimizer, held)


def _never_moved(case: Case, learning: Learning, optimizer: BuiltOptimizer, held: list[Parameter]) -> Iterable[Finding]:
    if not optimizer.steps and _enough(case, learning, optimizer):
        yield _without_step(learning, optimizer, held)
    elif optimizer.steps >= ENDED and _cleared_too_early(held):
        yield _without_gradient(learning, optimizer, held)


def _enough(case: Case, learning: Learning, optimizer: BuiltOptimizer) -> bool:
    if any(each.steps for each in learning.built):  # another one steps: this one may be meant for later
        return case.outcome == "finished" and learning.backwards >= PATIENT // 4
    if case.outcome == "finished":
        return learning.backwards >= ENDED
    if optimizer.clears >= 0.5 * learning.backwards:
        return learning.backwards >= THROWN_AWAY
    return learning.backwards >= PATIENT


def _cleared_too_early(held: list[Parameter]) -> bool:
    looked = [each for each in held if each.seen >= 5]
    return bool(looked) and all(each.none + each.zero == each.seen for each in looked)


def _without_step(learning: Learning, optimizer: BuiltOptimizer, held: list[Parameter]) -> Finding:
    loss = main_loss(learning)
    site = loss.site if loss is not None else optimizer.site
    evidence = [
        f"{learning.backwards:,} backward passes at {line(site)}, and 0 steps of the {optimizer.kind} built at "
        f"{line(optimizer.site)}",
        f"none of its {count(held)} has moved since the first of them",
    ]
    if optimizer.clears:
        evidence.append(f"its gradients were cleared {optimizer.clears:,} times, unused")
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"{learning.backwards:,} backward passes, but the optimizer never makes a step",
        evidence=tuple(evidence),
        where=where(learning, site),
        fix=Fix(
            f"Call `optimizer.step()` (with the parentheses) after the backward pass at {line(site)}; where it stands "
            f"behind a condition, that condition is never true."
        ),
        seen_by="flight",
    )


def _without_gradient(learning: Learning, optimizer: BuiltOptimizer, held: list[Parameter]) -> Finding:
    loss = main_loss(learning)
    site = loss.site if loss is not None else optimizer.site
    seen = max(each.seen for each in held)
    return RULE.finding(
        severity="error",
        confidence=0.93,
        title="the gradients are gone when the optimizer steps: no weight ever moves",
        evidence=(
            f"at {seen} of {seen} steps looked at, not one of {count(held)} had a gradient left, though "
            f"{learning.backwards:,} backward passes at {line(site)} reach them",
            f"zero_grad was called {optimizer.clears or learning.clears:,} times for {optimizer.steps:,} steps of this "
            f"{optimizer.kind}, and no weight has moved",
        ),
        where=where(learning, site),
        fix=Fix("Clear the gradients before `backward()` or after `step()`, not between the two."),
        seen_by="flight",
    )


RULE = Rule(
    "optimizer-never-steps",
    "learning",
    decide,
    explains=frozenset(("no-better-than-constant", "learning-rate-too-low", "vanishing-gradient")),
    gathers=True,
)
