"""weight-decay-dominates: weight decay pulls the weights to 0 harder than the gradient teaches them.

What it sees
    The decay term (weight decay times weight) is larger than the gradient at most steps, the weights have shrunk to a
    part of what they were, and the loss is no better than at the beginning.

Why it matters
    What the gradient builds up the decay takes away. The output goes towards a constant, with weights near 0.

Evidence
    Norms of weights at the beginning and now, of decay term and gradient, by parameter; the setting.

Fix
    A hundredth of the weight decay: 1e-4 with SGD, 1e-2 with AdamW are usual.

When it is wrong
    At the end of a good training decay and gradient balance each other; that is not reported, for there the loss has
    fallen.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, Optimizer, Parameter
from unstuck.rules.learning import curves, steps
from unstuck.rules.learning.measured import main_loss, where
from unstuck.rules.rule import Rule

DECAY = 5e-3
"""Below that it takes a run of many thousand steps to notice."""
SHRUNK = 0.5
"""Of the norm that a weight matrix began with."""
STEPS = 50
"""Values of the loss."""
DECOUPLED = ("AdamW", "Lion", "Adafactor")


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or loss.count < STEPS or loss.nonfinite:
            continue
        for optimizer in learning.optimizers:
            decay = steps.setting(optimizer, "weight_decay")
            if decay < DECAY or _learned(learning, loss):
                continue
            judged = steps.weights(learning, optimizer)
            pulled = [each for each in judged if _dominated(each, decay, optimizer)]
            if pulled and len(pulled) * 2 >= len(judged):
                yield _finding(learning, optimizer, loss, pulled, decay)
                break


def _learned(learning: Learning, loss: Loss) -> bool:
    share = curves.at_constant(learning, loss)
    return share < 0.9 if share is not None else curves.ended(loss) < 0.7 * curves.first(loss)


def _dominated(parameter: Parameter, decay: float, optimizer: Optimizer) -> bool:
    held = parameter.weights
    if len(held) < 8 or held[-1] > SHRUNK * held[0]:
        return False
    if optimizer.kind in DECOUPLED:
        shares = [
            steps.peak(optimizer) * decay * w / m for (_, m), w in zip(parameter.moves, held, strict=False) if m > 0
        ]
        return bool(shares) and median(shares) > 0.5
    return _share(parameter, decay) > 1


def _share(parameter: Parameter, decay: float) -> float:
    """Decay term beside the gradient, at the median of the first steps: later both are small."""
    pairs = list(zip(parameter.weights, parameter.grads, strict=False))[:16]
    return median(decay * w / max(g, 1e-30) for w, (_, g) in pairs)


def _finding(learning: Learning, optimizer: Optimizer, loss: Loss, pulled: list[Parameter], decay: float) -> Finding:
    worst = min(pulled, key=lambda each: each.weights[-1] / each.weights[0])
    number = curves.number
    beside = (
        ""
        if optimizer.kind in DECOUPLED
        else f"; the decay term was {number(_share(worst, decay))} times its gradient at the beginning"
    )
    return RULE.finding(
        severity="error",
        confidence=0.85,
        title=f"A weight decay of {decay:g} pulls the weights to 0 harder than the gradients teach them",
        evidence=(
            f"{worst.name or 'a weight'} {list(worst.shape)} shrank from a norm of {number(worst.weights[0])} to "
            f"{worst.weights[-1]:.2g}{beside}; so it is with {len(pulled)} weight matrices",
            f"the loss began at {number(curves.first(loss))} and is {number(curves.ended(loss))} after {loss.count:,} "
            f"steps ({steps.describe(optimizer)}, weight decay {decay:g})",
        ),
        where=where(learning, optimizer.site or loss.site),
        fix=Fix(
            f"Set weight_decay to {'0.01' if optimizer.kind in DECOUPLED else '1e-4'} or below, and raise it only if "
            "the model overfits."
        ),
        seen_by="flight",
    )


RULE = Rule(
    "weight-decay-dominates",
    "learning",
    decide,
    explains=frozenset(("predicts-one-class", "no-better-than-constant", "still-improving", "learning-rate-too-low")),
    gathers=True,
)
