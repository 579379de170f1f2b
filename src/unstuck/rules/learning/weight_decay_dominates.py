"""weight-decay-dominates: weight decay pulls the weights to 0 harder than the gradient trains them.

What it sees
    The decay term (weight decay times weight) is larger than the gradient at most steps, the weights have shrunk to a
    part of what they were, and the loss is no better than at the beginning.

Why it matters
    What the gradient builds up, the decay takes away. The output goes towards a constant, with weights near 0.

Evidence
    Norms of weights at the beginning and now, decay term and gradient by parameter, and the setting.

Fix
    A hundredth of the weight decay: 1e-4 with SGD, 1e-2 with AdamW are usual.

When it is wrong
    At the end of a good training decay and gradient balance each other; that is not reported, because the loss has
    fallen there.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, Optimizer, Parameter
from unstuck.rules.rule import Rule
from unstuck.rules.training import (
    described,
    end_mean,
    first_value,
    judged_weights,
    main_loss,
    number,
    peak_rate,
    setting,
    share_of_constant,
    where,
)

MIN_DECAY = 5e-3  # below it takes a run of many thousand steps to notice
MAX_NORM_LEFT = 0.5  # of the norm that a weight matrix began with
MIN_LOSS_VALUES = 50
MIN_NORMS = 8  # of a weight
FIRST_STEPS = 16  # that are compared: later both decay term and gradient are small
DECOUPLED = ("AdamW", "Lion", "Adafactor")


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or loss.count < MIN_LOSS_VALUES or loss.nonfinite or _has_learned(learning, loss):
            continue
        for optimizer in learning.optimizers:
            decay = setting(optimizer, "weight_decay")
            if decay < MIN_DECAY:
                continue
            weights = judged_weights(learning, optimizer)
            shrunk = [weight for weight in weights if _is_dominated(weight, decay, optimizer)]
            if shrunk and len(shrunk) * 2 >= len(weights):
                yield _finding(learning, optimizer, loss, shrunk, decay)
                break


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


RULE = Rule(
    "weight-decay-dominates",
    "learning",
    decide,
    explains=frozenset(("predicts-one-class", "learning-rate-too-low")),
    gathers=True,
)
