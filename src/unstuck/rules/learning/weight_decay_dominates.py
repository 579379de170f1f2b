"""weight-decay-dominates: weight decay pulls the weights to 0 harder than the gradient trains them.

What it sees
    The decay term (weight decay times weight) is larger than the gradient at most steps, the weights have shrunk to a
    part of what they were, and the loss is no better than at the beginning. Or, whatever the optimizer, also one that
    the script writes itself: each of the first steps took the same share off all weight matrices, a hundredth or more,
    which is what most of each step did, and the loss rests above half of what a constant prediction gives (where that
    is not known: of its first values).

Why it matters
    What the gradient builds up, the decay takes away. The output goes towards a constant, with weights near 0.

Evidence
    Norms of weights at the beginning and now, decay term and gradient by parameter, and the setting.

Fix
    A hundredth of the weight decay: 1e-4 with SGD, 1e-2 with AdamW are usual. In an optimizer of one's own: the decay
    times the learning rate.

When it is wrong
    At the end of a good training decay and gradient balance each other; that is not reported, because the loss has
    fallen there.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log
from statistics import fmean, median

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, Optimizer, Parameter
from unstuck.rules.rule import Rule
from unstuck.rules.training import (
    curve,
    described,
    end_mean,
    first_value,
    judged_weights,
    main_loss,
    number,
    peak_rate,
    setting,
    several_losses,
    share_of_constant,
    start_mean,
    where,
)

MIN_DECAY = 5e-3  # below it takes a run of many thousand steps to notice
MAX_NORM_LEFT = 0.5  # of the norm that a weight matrix began with
MIN_LOSS_VALUES = 50
MIN_NORMS = 8  # of a weight
FIRST_STEPS = 16  # that are compared: later both decay term and gradient are small
MIN_TAKEN = 8e-3  # of a weight in a step: then only the last hundred steps count; the usual decay takes 1e-5 of it
MIN_TAKEN_STEPS = 5  # the first ones: later the gradients answer
MAX_TAKEN_SPREAD = 0.2  # of the share, over matrices and steps: no gradient is the same for all of them, and stays so
MIN_ALONG = 0.3  # of a step's size; by chance a direction agrees with the weight's by 0.01 to 0.1
MIN_MATRICES = 3
MIN_MEMORIES = 10  # of as many steps as a weight lasts: then the run is as good as it gets
AT_REST = 0.05  # change of the loss from the second third of the run to the last
MIN_LEFT_OF_LOSS = 0.5  # of a constant prediction's, or the first
DECOUPLED = ("AdamW", "Lion", "Adafactor")


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or loss.count < MIN_LOSS_VALUES or loss.nonfinite:
            continue
        finding = _by_setting(learning, loss) or _by_what_steps_do(learning, loss)
        if finding is not None:
            yield finding


def _by_setting(learning: Learning, loss: Loss) -> Finding | None:
    for optimizer in [] if _has_learned(learning, loss) else learning.optimizers:
        decay = setting(optimizer, "weight_decay")
        if decay < MIN_DECAY:
            continue
        weights = judged_weights(learning, optimizer)
        shrunk = [weight for weight in weights if _is_dominated(weight, decay, optimizer)]
        if shrunk and len(shrunk) * 2 >= len(weights):
            return _finding(learning, optimizer, loss, shrunk, decay)
    return None


def _by_what_steps_do(learning: Learning, loss: Loss) -> Finding | None:
    if several_losses(learning) or not _rests_high(learning, loss):
        return None
    for optimizer in learning.optimizers:
        weights = judged_weights(learning, optimizer)
        taken = _taken_of_all(weights)
        shrunk = [weight for weight in weights if weight.weights[-1] <= MAX_NORM_LEFT * weight.weights[0]]
        if taken * optimizer.steps >= MIN_MEMORIES and len(shrunk) * 2 >= len(weights):
            return _own_finding(learning, optimizer, loss, shrunk, taken)
    return None


def _rests_high(learning: Learning, loss: Loss) -> bool:
    share, values = share_of_constant(learning, loss), curve(loss)
    third = len(values) // 3
    if third < 3:
        return False
    before, now = fmean(values[third:-third]), fmean(values[-third:])
    left = share if share is not None else end_mean(loss) / max(start_mean(loss), 1e-30)
    return left >= MIN_LEFT_OF_LOSS and abs(now - before) <= AT_REST * abs(before)


def _taken_of_all(weights: list[Parameter]) -> float:
    """The share that each of the first steps took off all matrices alike; 0 where there is none."""
    shares = [_taken(weight) for weight in weights]
    every = [share for each in shares for share in each]
    middle = median(every) if len(weights) >= MIN_MATRICES and all(shares) else 0.0
    return middle if middle >= MIN_TAKEN and max(every) - min(every) <= MAX_TAKEN_SPREAD * middle else 0.0


def _taken(weight: Parameter) -> list[float]:
    """The share that each of the first steps takes off it, where that is much of what a step does."""
    moves, norms = weight.moves[: MIN_TAKEN_STEPS + 1], weight.weights
    steps = [
        (1 - after / norm, (norm - after) / size)
        for (step, size), (later, _), norm, after in zip(moves, moves[1:], norms, norms[1:], strict=False)
        if later == step + 1 and norm > 0 and size > 0
    ]
    along = len(steps) == MIN_TAKEN_STEPS and median(along for _, along in steps) >= MIN_ALONG
    return [share for share, _ in steps] if along else []


def _has_learned(learning: Learning, loss: Loss) -> bool:
    share = share_of_constant(learning, loss)
    return share < 0.9 if share is not None else end_mean(loss) < 0.7 * first_value(loss)


def _is_dominated(weight: Parameter, decay: float, optimizer: Optimizer) -> bool:
    norms = weight.weights
    if len(norms) < MIN_NORMS or norms[-1] > MAX_NORM_LEFT * norms[0]:
        return False
    if optimizer.kind not in DECOUPLED:
        return _decay_per_gradient(weight, decay) > 1
    rate = peak_rate(optimizer)
    shares = [rate * decay * norm / move for (_, move), norm in zip(weight.moves, norms, strict=False) if move > 0]
    return bool(shares) and median(shares) > 0.5


def _decay_per_gradient(weight: Parameter, decay: float) -> float:
    pairs = list(zip(weight.weights, weight.grads, strict=False))[:FIRST_STEPS]
    return median(decay * norm / max(gradient, 1e-30) for norm, (_, gradient) in pairs)


def _finding(learning: Learning, optimizer: Optimizer, loss: Loss, shrunk: list[Parameter], decay: float) -> Finding:
    worst = min(shrunk, key=lambda weight: weight.weights[-1] / weight.weights[0])
    decoupled, compared = optimizer.kind in DECOUPLED, ""
    enough = "0.01" if decoupled else "1e-4"
    if not decoupled:
        compared = (
            f"; at the beginning the decay term was {number(_decay_per_gradient(worst, decay))} times its gradient"
        )
    return RULE.finding(
        severity="error",
        confidence=0.85,
        title=f"A weight decay of {decay:g} pulls the weights to 0 harder than the gradients train them",
        evidence=(
            f"the norm of {worst.name or 'a weight'} {list(worst.shape)} shrank from {number(worst.weights[0])} to "
            f"{worst.weights[-1]:.2g}{compared}; {len(shrunk)} weight matrices shrank like this",
            f"the loss began at {number(first_value(loss))} and is {number(end_mean(loss))} after {loss.count:,} "
            f"steps ({described(optimizer)}, weight decay {decay:g})",
        ),
        where=where(learning, optimizer.site or loss.site),
        fix=Fix(
            f"Set weight_decay to {enough} or below, and raise it only if the model overfits.",
            setting="weight decay",
            value=enough,
        ),
    )


def _own_finding(
    learning: Learning, optimizer: Optimizer, loss: Loss, shrunk: list[Parameter], taken: float
) -> Finding:
    worst = min(shrunk, key=lambda weight: weight.weights[-1] / weight.weights[0])
    return RULE.finding(
        severity="error",
        confidence=0.85,
        title=f"Each step takes {taken:.1%} off every weight: decay outweighs the gradients",
        evidence=(
            f"each of the first steps shrank all weight matrices by the same {taken:.1%}, whatever their gradients: "
            f"what a gradient does is half gone after {log(0.5) / log(1 - taken):.0f} steps",
            f"the norm of {worst.name or 'a weight'} {list(worst.shape)} shrank from {number(worst.weights[0])} to "
            f"{worst.weights[-1]:.2g}; {len(shrunk)} weight matrices shrank to less than half",
            f"the loss began at {number(first_value(loss))} and rests at {number(end_mean(loss))} after "
            f"{loss.count:,} steps",
        ),
        where=where(learning, optimizer.site or loss.site),
        fix=Fix(
            "Multiply the decay by the learning rate (`p.mul_(1 - rate * decay)`); with 1e-3 and 1e-2 that takes 1e-5 "
            "off a weight in a step.",
            setting="weight decay",
        ),
    )


RULE = Rule(
    "weight-decay-dominates",
    "learning",
    decide,
    explains=frozenset(("predicts-one-class", "learning-rate-too-low")),
    gathers=True,
)
