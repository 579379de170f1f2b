"""learning-rate-too-low: gradients come, but the steps are so small that nothing moves.

What it sees
    A step changes the weights by less than a millionth of their size (or all steps of the run together by less than a
    hundredth), the gradients are not small, and the loss stands.

Why it matters
    It does not stop: at this pace the weights would need hundreds of thousands of steps to get anywhere.

Evidence
    The learning rate, the median size of an update beside the weight, the size of the gradients, the loss.

Fix
    Ten to a hundred times the learning rate.

When it is wrong
    Warm-up and the end of a schedule have small rates on purpose: the highest rate of the run counts, and a rate that
    still rises is not judged. Fine-tuning at 2e-5 with Adam moves weights by a thousandth a step, far above this.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, Optimizer
from unstuck.rules.learning import curves, steps
from unstuck.rules.learning.measured import main_loss, median_gradient, where
from unstuck.rules.rule import Rule

TINY = 1e-6
"""Change of a weight matrix in a step, of its size: at that pace nothing is learned in any run."""
WHOLE = 0.02
"""… and in all steps of a run that has ended."""
STEPS = 100
"""Values of the loss."""
GRADIENT = 1e-4
"""Beside the weight; below that the gradient is what is small."""
HIGHEST = {True: 2e-5, False: 2e-3}
"""A rate above that is not low, for optimizers that scale gradients and for those that do not."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or loss.count < STEPS or loss.nonfinite or curves.adversarial(learning):
            continue
        for optimizer in learning.optimizers:
            found = _slow(learning, optimizer, ended=case.outcome != "running")
            if found is not None and curves.flat(loss) and not curves.learned(learning, loss):
                yield _finding(learning, optimizer, loss, *found)
                break


def _slow(learning: Learning, optimizer: Optimizer, *, ended: bool) -> tuple[float, float] | None:
    """Update and gradient beside the weight, at the median; None where steps are not small, or for another reason."""
    parameters = [each for each in steps.weights(learning, optimizer) if each.grads]
    ratio = steps.typical(parameters)
    rate = steps.peak(optimizer)
    if ratio is None or not 0 < rate <= HIGHEST[optimizer.kind in steps.ADAPTIVE] or _rises(optimizer):
        return None
    gradient = median(median_gradient(each) / each.weights[0] for each in parameters)
    if gradient < GRADIENT:
        return None
    if ratio < TINY or (ended and ratio * optimizer.steps < WHOLE):
        return ratio, gradient
    return None


def _rises(optimizer: Optimizer) -> bool:
    rates = [rate for _, rate in optimizer.lrs]
    return len(rates) > 1 and rates[-1] >= max(rates[:-1]) and rates[-1] > rates[0]


def _finding(learning: Learning, optimizer: Optimizer, loss: Loss, ratio: float, gradient: float) -> Finding:
    rate = steps.peak(optimizer)
    return RULE.finding(
        severity="error",
        confidence=0.85,
        title=f"The learning rate of {rate:g} is too low: a step changes the weights by {ratio:.1e} of their size",
        evidence=(
            f"{steps.describe(optimizer)}: at the median a step changes a weight matrix by {ratio:.1e} of its norm, "
            f"all {optimizer.steps:,} steps together by at most {ratio * optimizer.steps:.1e} (healthy: 1e-3 a step)",
            f"the gradients are there ({gradient:.1e} of the weights), and the loss went from "
            f"{curves.number(curves.began(loss))} to {curves.number(curves.ended(loss))} in {loss.count:,} steps",
        ),
        where=where(learning, optimizer.site or loss.site),
        fix=Fix(f"Try a learning rate of {_proposed(rate, ratio, optimizer):.1g}."),
        seen_by="flight",
    )


def _proposed(rate: float, ratio: float, optimizer: Optimizer) -> float:
    """So that a step changes weights by a thousandth, within what is usual for the optimizer."""
    usual = 1e-3 if optimizer.kind in steps.ADAPTIVE else 0.1
    return min(usual, rate * 1e-3 / ratio) if ratio > 0 else usual


RULE = Rule(
    "learning-rate-too-low",
    "learning",
    decide,
    explains=frozenset(("no-better-than-constant", "still-improving")),
    gathers=True,
)
