"""learning-rate-too-low: gradients are fine, but the steps are so small that nothing moves.

What it sees
    A step changes the weights by less than a millionth of their size (or all steps of the run together by less than a
    fiftieth), the gradients are not small, and the loss does not fall.

Why it matters
    At this pace the weights would need hundreds of thousands of steps to get anywhere: the compute is wasted.

Evidence
    The learning rate, the median size of an update compared with the weight, the size of the gradients, the loss.

Fix
    Ten to a hundred times the learning rate.

When it is wrong
    Warm-up and the end of a schedule have small rates on purpose: the highest rate of the run counts, and a rate that
    still rises is judged only when the run has finished. Fine-tuning at 2e-5 with Adam moves weights by a thousandth a
    step, far above this.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, Optimizer
from unstuck.rules.rule import Rule
from unstuck.rules.training import (
    ADAPTIVE_OPTIMIZERS,
    described,
    end_mean,
    has_learned,
    highest_low_rate,
    is_flat,
    judged_weights,
    main_loss,
    median_gradient,
    number,
    peak_rate,
    several_losses,
    start_mean,
    update_ratios,
    where,
)

MAX_UPDATE_RATIO = 1e-6  # of a weight's size in a step: at that pace nothing is learned in any run …
MAX_RUN_RATIO = 0.02  # … and in all steps of a run that is over
MIN_LOSS_VALUES = 100
MIN_GRADIENT_RATIO = 1e-4  # compared with the weight: below it the gradient is what is small


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or loss.count < MIN_LOSS_VALUES or loss.nonfinite or several_losses(learning):
            continue
        for optimizer in learning.optimizers:
            if _rises(optimizer) and case.outcome != "finished":
                continue
            slow = _slow(learning, optimizer, ended=case.outcome != "running")
            if slow is not None and is_flat(loss) and not has_learned(learning, loss):
                yield _finding(learning, optimizer, loss, *slow)
                break


def _slow(learning: Learning, optimizer: Optimizer, *, ended: bool) -> tuple[float, float] | None:
    """Median update and gradient compared with the weight; None where steps are not small, or for another reason."""
    if not 0 < peak_rate(optimizer) <= highest_low_rate(optimizer):
        return None
    weights = [weight for weight in judged_weights(learning, optimizer) if weight.grads]
    updates = [median(ratios) for weight in weights if (ratios := update_ratios(weight))]
    if not updates:
        return None
    update = median(updates)
    gradient = median(median_gradient(weight) / weight.weights[0] for weight in weights)
    small = update < MAX_UPDATE_RATIO or (ended and update * optimizer.steps < MAX_RUN_RATIO)
    return (update, gradient) if small and gradient >= MIN_GRADIENT_RATIO else None


def _rises(optimizer: Optimizer) -> bool:
    rates = [rate for _, rate in optimizer.lrs]
    return len(rates) > 1 and rates[-1] >= max(rates[:-1]) and rates[-1] > rates[0]


def _finding(learning: Learning, optimizer: Optimizer, loss: Loss, update: float, gradient: float) -> Finding:
    rate = peak_rate(optimizer)
    usual = 1e-3 if optimizer.kind in ADAPTIVE_OPTIMIZERS else 0.1
    proposed = min(usual, rate * 1e-3 / update) if update > 0 else usual  # so that a step changes weights by 0.001
    return RULE.finding(
        severity="error",
        confidence=0.85,
        title=f"The learning rate of {rate:g} is too low: a step changes the weights by {update:.1e} of their size",
        evidence=(
            f"{described(optimizer)}: a step changes a weight matrix by {update:.1e} of its norm (median), all "
            f"{optimizer.steps:,} steps together by at most {update * optimizer.steps:.1e} (healthy: 1e-3 a step)",
            f"the rate was still rising when the run ended, from {optimizer.lrs[0][1]:.1e}: its warm-up is longer than "
            "the run"
            if _rises(optimizer)
            else "",
            f"gradients are fine ({gradient:.1e} of the weights), and the loss went from {number(start_mean(loss))} to "
            f"{number(end_mean(loss))} in {loss.count:,} steps",
        ),
        where=where(learning, optimizer.site or loss.site),
        fix=Fix(
            "Shorten the warm-up to a few per cent of the run's steps; check whether it counts steps or samples.",
            setting="schedule",
        )
        if _rises(optimizer)
        else Fix(f"Try a learning rate of {proposed:.1g}.", setting="learning rate", value=f"{proposed:.1g}"),
    )


RULE = Rule("learning-rate-too-low", "learning", decide, gathers=True)
