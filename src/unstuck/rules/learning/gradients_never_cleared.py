"""gradients-never-cleared: each step adds its gradients to those of all steps before.

What it sees
    No backward pass between two steps of an optimizer started with cleared gradients: what the step before had used was
    still there, nearly every time. The same where the script updates its weights itself (`p -= lr * p.grad`).

Why it matters
    `backward` adds to the existing gradients. Without `zero_grad` a step follows the sum of all gradients of the run:
    the loss swings with ever larger steps instead of falling, whatever the learning rate.

Evidence
    In how many pairs of steps the old gradients were still there, how often `zero_grad` was called, and how the
    gradients grew.

Fix
    `optimizer.zero_grad()` once before each `backward()`, or after each `step()`. Where the script updates its weights
    itself: `p.grad = None` for each of them after the update.

When it is wrong
    Accumulating over several batches clears after each step, and is not reported. Optimizers that evaluate a closure
    several times (LBFGS) are left out, as are steps that a GradScaler skips. Updates written by hand that shrink the
    gradients by a factor instead of clearing them (momentum) are not reported; a method that wants the sum of all
    gradients (dual averaging) looks the same. By hand, only gradients on the CPU are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records import Site
from unstuck.recorder.records.learning import BuiltOptimizer, Learning, Optimizer, Parameter
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
        for by_hand in [entry for entry in learning.optimizers if not entry.kind]:
            if by_hand.checked >= MIN_PAIRS and by_hand.stale >= MIN_STALE_SHARE * by_hand.checked:
                yield _by_hand(learning, by_hand)


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
            _left_over(optimizer, site),
            f"zero_grad of this {optimizer.kind} {called} in {optimizer.steps:,} steps",
            _growth([parameter for parameter in learning.parameters if parameter.held == optimizer.number]),
        ),
        where=where(learning, site),
        fix=f"Call `optimizer.zero_grad()` before the backward pass at {line(site)}.",
    )


def _by_hand(learning: Learning, optimizer: Optimizer) -> Finding:
    site = loss_site(learning)
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title="Gradients are never cleared: every update follows the sum of all gradients before it",
        evidence=(
            _left_over(optimizer, site),
            f"the script updates its weights itself, {optimizer.steps:,} times so far, and no optimizer is there to "
            "clear them",
            _growth(learning.parameters),
        ),
        where=where(learning, site),
        fix=f"Set `p.grad = None` (or call `p.grad.zero_()`) for every parameter after the update, before the next "
        f"backward pass at {line(site)}.",
    )


def _left_over(optimizer: BuiltOptimizer | Optimizer, site: Site | None) -> str:
    return (
        f"in {optimizer.stale} of {optimizer.checked} pairs of steps checked, the gradients of one step were still "
        f"there when {line(site)} added those of the next"
    )


def _growth(parameters: list[Parameter]) -> str:
    """How the gradients grew, at the parameter that shows it best."""
    growths = []
    for parameter in parameters:
        norms = [norm for _, norm in parameter.grads if norm > 0]
        if len(norms) >= 8:
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
