"""learning-rate-too-high: a step changes the weights by more than they are, and the loss does not get better.

What it sees
    Within the first updates a weight matrix changes by more than its own size, or by a tenth and more again and again,
    while the loss rises, breaks or stays where it was.

Why it matters
    Such a step throws away what the weights were. The loss jumps over every valley; units are pushed to where they
    never answer again; in the end numbers overflow.

Evidence
    Size of the update beside the size of the weight, by parameter and step; the loss before and after.

Fix
    A tenth of the learning rate, then again a tenth if that is not enough; or a warm-up.

When it is wrong
    Weights that begin at 0, biases and gains change by any factor in a healthy run and are not looked at, nor are
    tensors of a few numbers. A run whose loss falls all the same is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from statistics import median

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, Optimizer, Parameter
from unstuck.rules.learning import curves, steps
from unstuck.rules.learning.measured import main_loss, update_ratios, where
from unstuck.rules.rule import Rule

FIRST = 5
"""Updates looked at singly."""
LARGE = 0.1
"""Median change of a weight matrix in an update, of its size: a healthy one is around 0.001."""
STEPS = 12
"""Updates of that median, and values of the loss."""
EXPLODED = 100.0
"""Gradient beside the weight at the first step: above that it is the gradient that is too large, not the rate."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or curves.adversarial(learning):
            continue
        for optimizer in learning.optimizers:
            found = _thrown(learning, optimizer)
            if found is not None and _worse(learning, loss, found[1]):
                yield _finding(learning, optimizer, loss, *found)
                break


def _thrown(learning: Learning, optimizer: Optimizer) -> tuple[Parameter, float, int] | None:
    """The parameter that changed most beside its size: in one of the first updates, or at their median."""
    worst: tuple[Parameter, float, int] | None = None
    for each in steps.weights(learning, optimizer):
        ratios = [ratio for ratio in update_ratios(each) if isfinite(ratio)]
        if not ratios or not each.grads or each.grads[0][1] > EXPLODED * each.weights[0]:
            continue
        first = max(ratios[:FIRST])
        step = each.moves[update_ratios(each).index(first)][0]
        if first <= 1 and median(ratios[:STEPS]) <= LARGE:
            continue
        if worst is None or first > worst[1]:
            worst = (each, first, step)
    return worst


def _worse(learning: Learning, loss: Loss, ratio: float) -> bool:
    """It broke, or rose, or is after many steps where a constant prediction would be."""
    if loss.nonfinite:
        rose = bool(loss.first) and max(loss.first) > 10 * max(abs(curves.began(loss)), 1e-12)
        return ratio > 1 and (rose or loss.count < STEPS)
    if loss.count < STEPS:
        return False
    end, start = curves.ended(loss), curves.first(loss)
    if end > 1.5 * start and end > curves.lowest(loss) * 1.5:
        return True
    return loss.count >= 3 * STEPS and _came_to_nothing(learning, loss, ratio)


def _came_to_nothing(learning: Learning, loss: Loss, ratio: float) -> bool:
    """Thrown up, it is at best back at the frequencies of the answers."""
    share, start = curves.at_constant(learning, loss), curves.first(loss)
    thrown = max(loss.first) / max(start, 1e-12)
    if ratio > 1 and thrown > 1.3 and share is not None and share > 0.95:
        return True
    if curves.learned(learning, loss) or (share is not None and share <= 0.9):
        return False
    return (ratio > 1 or thrown > 3) and curves.ended(loss) > 0.9 * start


def _finding(
    learning: Learning, optimizer: Optimizer, loss: Loss, parameter: Parameter, ratio: float, step: int
) -> Finding:
    number = curves.number
    went = f"the loss began at {number(curves.first(loss))}, was at most {number(_highest(loss))}"
    went += (
        f", and no number at step {loss.nonfinite_step}" if loss.nonfinite else f", and is {number(curves.ended(loss))}"
    )
    rate = steps.peak(optimizer)
    return RULE.finding(
        severity="error",
        confidence=0.9 if ratio > 1 else 0.75,
        title=f"The learning rate of {rate:g} is too high: one step changed {parameter.name or 'a weight'} by "
        f"{number(ratio)} times its size",
        evidence=(
            f"{steps.describe(optimizer)}; at step {step} {parameter.name or 'a weight'} {list(parameter.shape)} "
            f"moved by {number(ratio)} times its norm (a healthy step is around 0.001)",
            f"{went}, after {loss.count:,} steps",
        ),
        where=where(learning, optimizer.site or loss.site, step=step),
        fix=Fix(f"Try a learning rate of {_proposed(rate, ratio):.1g}, or let it rise over the first steps (warm-up)."),
        seen_by="flight",
    )


def _highest(loss: Loss) -> float:
    return max([*loss.first, *(value for _, value in loss.points)], default=loss.last)


def _proposed(rate: float, ratio: float) -> float:
    """So that a step changes weights by about a hundredth, but not below a thousandth of the present rate."""
    return rate * max(1e-3, min(0.1, 0.01 / ratio))


RULE = Rule(
    "learning-rate-too-high",
    "learning",
    decide,
    explains=frozenset(
        (
            "loss-oscillates",
            "learning-rate-too-low",
            "predicts-one-class",
            "no-better-than-constant",
            "still-improving",
            "dead-units",
        )
    ),
    gathers=True,
)
