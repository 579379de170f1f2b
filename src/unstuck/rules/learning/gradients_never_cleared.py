"""gradients-never-cleared: each step adds its gradients to those of all steps before.

What it sees
    No backward pass between two steps of an optimizer started with cleared gradients: what the step before had used was
    still there, nearly every time.

Why it matters
    `backward` adds to the existing gradients. Without `zero_grad` a step follows the sum of all gradients of the run:
    the loss swings with ever larger steps instead of falling, whatever the learning rate.

Evidence
    In how many pairs of steps the old gradients were still there, how often `zero_grad` was called, and how the
    gradients grew.

Fix
    `optimizer.zero_grad()` once before each `backward()`, or after each `step()`.

When it is wrong
    Accumulating over several batches clears after each step, and is not reported. Optimizers that evaluate a closure
    several times (LBFGS) are left out, as are steps that a GradScaler skips.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import BuiltOptimizer, Learning
from unstuck.rules.rule import Rule
from unstuck.rules.training import line, loss_site, where

MIN_PAIRS = 6  # of steps
MIN_STALE_SHARE = 0.9  # clearing once an epoch leaves some pairs clean
MAX_CLEARS_PER_STEP = 0.1
MIN_GROWTH = 3.0  # of a gradient, to be worth a line of evidence
CLOSURES = ("LBFGS",)


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for optimizer in learning.built:
            if optimizer.kind in CLOSURES or optimizer.checked < MIN_PAIRS:
                continue
            stale = optimizer.stale >= MIN_STALE_SHARE * optimizer.checked
            if stale and optimizer.clears <= MAX_CLEARS_PER_STEP * optimizer.steps:
                yield _finding(learning, optimizer)


def _finding(learning: Learning, optimizer: BuiltOptimizer) -> Finding:
    site = loss_site(learning) or optimizer.site
    times = "once" if optimizer.clears == 1 else f"{optimizer.clears:,} times"
    called = f"was called {times}" if optimizer.clears else "was never called"
    every = f"only once in {round(optimizer.steps / optimizer.clears):,} steps" if optimizer.clears else ""
    return RULE.finding(
        severity="error",
        confidence=0.97,
        title=f"Gradients are cleared {every}: each step follows the sum of those before it"
        if every
        else "Gradients are never cleared: every step follows the sum of all gradients before it",
        evidence=(
            f"in {optimizer.stale} of {optimizer.checked} pairs of steps checked, the gradients of one step were still "
            f"there when {line(site)} added those of the next",
            f"zero_grad of this {optimizer.kind} {called} in {optimizer.steps:,} steps",
            _growth(learning, optimizer),
        ),
        where=where(learning, site),
        fix=f"Call `optimizer.zero_grad()` before the backward pass at {line(site)}.",
    )


def _growth(learning: Learning, optimizer: BuiltOptimizer) -> str:
    """How the gradients grew, at the parameter that shows it best."""
    growths = []
    for parameter in learning.parameters:
        norms = [norm for _, norm in parameter.grads if norm > 0]
        if parameter.held == optimizer.number and len(norms) >= 8:
            growths.append((max(norms) / norms[0], parameter.name, norms[0], max(norms)))
    growth, name, first, last = max(growths, default=(0.0, "", 0.0, 0.0))
    return f"the gradient of {name} went from {first:.3g} to {last:.3g}" if growth > MIN_GROWTH and name else ""


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
