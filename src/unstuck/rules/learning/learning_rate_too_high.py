"""learning-rate-too-high: a step changes the weights by more than their own size, and the loss does not improve.

What it sees
    Within the first updates a weight matrix changes by more than its own size, or by a tenth or more again and again,
    while the loss rises, becomes NaN or stays where it was.

Why it matters
    Such a step throws away what the weights were. The loss jumps over every valley, units die, and in the end numbers
    overflow.

Evidence
    The size of the update compared with the weight, by parameter and step; the loss before and after.

Fix
    A tenth of the learning rate, then another tenth if that is not enough; or a warm-up.

When it is wrong
    Weights that start at 0 or near it, biases and gains change by any factor in a healthy run and are left out, as are
    tensors of a few values. A run whose loss falls all the same is not reported, nor is reinforcement learning by the
    course of its loss, which rises and falls with the rewards.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from statistics import median
from typing import NamedTuple

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, Optimizer, Parameter
from unstuck.rules.rule import Rule
from unstuck.rules.training import (
    FIRST_UPDATES,
    described,
    end_mean,
    explodes_at_first,
    first_value,
    has_learned,
    judged_weights,
    lowest_mean,
    main_loss,
    number,
    peak_rate,
    several_losses,
    share_of_constant,
    start_mean,
    update_ratios,
    where,
)

MIN_MEDIAN_RATIO = 0.1  # update compared with the weight: a healthy one is around 0.001
MIN_STEPS = 12  # updates in that median, and values of the loss


class Jump(NamedTuple):
    """The largest first update of a weight."""

    parameter: Parameter
    ratio: float
    step: int


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or several_losses(learning):
            continue
        for optimizer in learning.optimizers:
            jump = max(_jumps(learning, optimizer), key=lambda jump: jump.ratio, default=None)
            if jump is not None and _got_worse(learning, loss, jump.ratio):
                yield _finding(learning, optimizer, loss, jump)
                break


def _jumps(learning: Learning, optimizer: Optimizer) -> Iterable[Jump]:
    for weight in judged_weights(learning, optimizer):
        ratios = update_ratios(weight)
        finite = [ratio for ratio in ratios if isfinite(ratio)]
        if not finite or not weight.grads or explodes_at_first(weight):
            continue
        largest = max(finite[:FIRST_UPDATES])
        # A move that no rate explains may be of several threads, or of gradients gathered elsewhere.
        by_median = bool(optimizer.lrs) and median(finite[:MIN_STEPS]) > MIN_MEDIAN_RATIO
        if largest > 1 or by_median:
            yield Jump(weight, largest, weight.moves[ratios.index(largest)][0])


def _got_worse(learning: Learning, loss: Loss, ratio: float) -> bool:
    """It became NaN, or rose, or is where a constant prediction would be after many steps."""
    if loss.nonfinite:
        rose = bool(loss.first) and max(loss.first) > 10 * max(abs(start_mean(loss)), 1e-12)
        return ratio > 1 and (rose or loss.count < MIN_STEPS)
    if loss.count < MIN_STEPS or _is_objective(learning, loss):
        return False
    end = end_mean(loss)
    if end > 1.5 * first_value(loss) and end > 1.5 * lowest_mean(loss):
        return True
    return loss.count >= 3 * MIN_STEPS and _came_to_nothing(learning, loss, ratio)


def _is_objective(learning: Learning, loss: Loss) -> bool:
    """It goes below 0 and ends in no loss function alone, as in reinforcement learning: its course says nothing."""
    supervised = any(head.called == loss.site and head.signed for head in learning.heads)
    return not supervised and min([*loss.first, *(value for _, value in loss.points)], default=0.0) < 0


def _came_to_nothing(learning: Learning, loss: Loss, ratio: float) -> bool:
    """Thrown up first, and at best back at what a constant prediction gives."""
    share, start = share_of_constant(learning, loss), first_value(loss)
    thrown_up = max(loss.first) / max(start, 1e-12)
    if ratio > 1 and thrown_up > 1.3 and share is not None and share > 0.95:
        return True
    if has_learned(learning, loss) or (share is not None and share <= 0.9):
        return False
    return (ratio > 1 or thrown_up > 3) and end_mean(loss) > 0.9 * start


def _finding(learning: Learning, optimizer: Optimizer, loss: Loss, jump: Jump) -> Finding:
    name, rate = jump.parameter.name or "a weight", peak_rate(optimizer)
    highest = max([*loss.first, *(value for _, value in loss.points)], default=loss.last)
    end = f"is {number(end_mean(loss))} after {loss.count:,} steps"
    if loss.nonfinite:
        end = f"became NaN at step {loss.nonfinite_step}"
    lower = max(1e-3, min(0.1, 0.01 / jump.ratio))  # so that a step changes weights by about a hundredth
    of_rate = f" of {rate:g}" if rate else ""
    proposed = f"{rate * lower:.1g}" if rate else ""  # an optimizer that is not torch's does not say
    better = f"of {proposed}" if proposed else f"{1 / lower:,.0f} times lower"
    return RULE.finding(
        severity="error",
        confidence=0.9 if jump.ratio > 1 else 0.75,
        title=f"The learning rate{of_rate} is too high: one step changed {name} by {number(jump.ratio)} times its size",
        evidence=(
            f"{described(optimizer)}; at step {jump.step} {name} {list(jump.parameter.shape)} moved by "
            f"{number(jump.ratio)} times its norm (a healthy step is around 0.001)",
            f"the loss began at {number(first_value(loss))}, was {number(highest)} at most, and {end}",
        ),
        where=where(learning, optimizer.site or loss.site, step=jump.step),
        fix=Fix(
            f"Try a learning rate {better}, or a warm-up over the first steps.",
            setting="learning rate",
            value=proposed,
        ),
    )


RULE = Rule(
    "learning-rate-too-high",
    "learning",
    decide,
    explains=frozenset(("loss-oscillates", "learning-rate-too-low", "predicts-one-class", "dead-units")),
    gathers=True,
)
