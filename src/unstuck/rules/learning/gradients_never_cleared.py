"""gradients-never-cleared: each step adds its gradients to those of all steps before.

What it sees
    Between two steps of an optimizer there was no backward pass before which its gradients were cleared: what the step
    before had used was still there, nearly every time it was looked.

Why it matters
    `backward` adds to the gradients that are there. Without `zero_grad` a step follows the sum of all gradients of the
    run: the loss swings with ever larger steps instead of falling, whatever the learning rate.

Evidence
    In how many of the pairs of steps looked at the old gradients were there, how often `zero_grad` was called, and how
    the size of the gradients went.

Fix
    `optimizer.zero_grad()` once before each `backward()`, or after each `step()`.

When it is wrong
    Accumulating over several batches clears after each step, and is not reported. Optimizers that evaluate a closure
    several times (LBFGS) are left out, as are steps that a loss scaler skips.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import BuiltOptimizer, Learning
from unstuck.rules.learning.measured import main_loss, where
from unstuck.rules.learning.ownership import line
from unstuck.rules.rule import Rule

ENOUGH = 6
"""Pairs of steps looked at."""
SHARE = 0.9
"""Clearing once an epoch leaves some pairs of steps clean."""
CLOSURES = ("LBFGS",)


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for optimizer in learning.built:
            if optimizer.kind in CLOSURES or optimizer.checked < ENOUGH:
                continue
            if optimizer.stale < SHARE * optimizer.checked or optimizer.clears > 0.1 * optimizer.steps:
                continue
            yield _finding(learning, optimizer)


def _finding(learning: Learning, optimizer: BuiltOptimizer) -> Finding:
    loss = main_loss(learning)
    site = loss.site if loss is not None else optimizer.site
    times = "once" if optimizer.clears == 1 else f"{optimizer.clears:,} times"
    seldom = f"was called {times}" if optimizer.clears else "was never called"
    evidence = [
        f"in {optimizer.stale} of {optimizer.checked} pairs of steps looked at, the gradients of the one step were "
        f"still there when {line(site)} added those of the next",
        f"zero_grad of this {optimizer.kind} {seldom} in {optimizer.steps:,} steps",
    ]
    grown = _grown(learning, optimizer)
    if grown:
        evidence.append(grown)
    return RULE.finding(
        severity="error",
        confidence=0.97,
        title=_title(optimizer),
        evidence=tuple(evidence),
        where=where(learning, site),
        fix=Fix(f"Call `optimizer.zero_grad()` before the backward pass at {line(site)}."),
        seen_by="flight",
    )


def _title(optimizer: BuiltOptimizer) -> str:
    if not optimizer.clears:
        return "the gradients are never cleared: every step follows the sum of all gradients before it"
    every = round(optimizer.steps / optimizer.clears)
    return f"the gradients are cleared only once in {every:,} steps: each follows the sum of those before it"


def _grown(learning: Learning, optimizer: BuiltOptimizer) -> str:
    """How the gradients grew, of the parameter where that shows best."""
    best, name, ends = 0.0, "", (0.0, 0.0)
    for each in learning.parameters:
        norms = [norm for _, norm in each.grads if norm > 0]
        if each.held == optimizer.number and len(norms) >= 8 and max(norms) / norms[0] > best:
            best, name, ends = max(norms) / norms[0], each.name, (norms[0], max(norms))
    return f"the gradient of {name} went from {ends[0]:.3g} to {ends[1]:.3g}" if best > 3 and name else ""


RULE = Rule(
    "gradients-never-cleared",
    "learning",
    decide,
    explains=frozenset(
        (
            "exploding-gradient",
            "learning-rate-too-high",
            "loss-oscillates",
            "dead-units",
            "saturated-units",
            "loss-spike",
        )
    ),
    gathers=True,
)
