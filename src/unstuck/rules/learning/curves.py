"""How a loss went: where it began, where it is, whether it falls, swings or stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median, pstdev

from unstuck.model import Case
from unstuck.recorder.records.learning import Learning, Loss, LossHead
from unstuck.rules.learning.measured import loss_of

FEW = 5
"""First values whose mean is a beginning."""
MEASURES = ("mse", "squared", "absolute", "smooth_l1", "huber")
"""Loss functions to which a target is a number."""
AT_REST = 0.95
"""Of the loss of a constant prediction: what learns a little by heart gets some per cent below it, labels unrelated or
not."""
STUCK, STUCK_YET = 80, 1500
"""Values of a loss that has come to its end, and of one that goes on: then it has had its time."""


def began(loss: Loss) -> float:
    """Its first values, of which one may be a chance."""
    return fmean(loss.first[:FEW]) if loss.first else 0.0


def first(loss: Loss) -> float:
    """Its very first value: where a step throws the loss up, the next ones are no beginning any more."""
    return loss.first[0] if loss.first else 0.0


def ended(loss: Loss) -> float:
    """Mean of its last tenth."""
    values = [value for _, value in loss.points]
    return fmean(values[-max(3, len(values) // 10) :]) if values else loss.last


def lowest(loss: Loss) -> float:
    """The best mean over a twentieth of the run."""
    values = [value for _, value in loss.points]
    width = max(1, len(values) // 20)
    return min((fmean(values[at : at + width]) for at in range(len(values) - width + 1)), default=loss.last)


def constant(head: LossHead) -> float | None:
    """What the best prediction that is the same for every sample would give, where it can be compared with the loss."""
    value = head.target.constant
    if value is None or not head.bare or head.broadcast or head.target.expanded or value <= 0:
        return None
    return value if head.target.count >= 64 else None


def at_constant(learning: Learning, loss: Loss) -> float | None:
    """The loss as a share of that of the best constant prediction."""
    for head in learning.heads:
        if head.called == loss.site and (best := constant(head)) is not None:
            return ended(loss) / best
    return None


def stuck(case: Case) -> Iterator[tuple[Learning, LossHead, Loss, float]]:
    """Losses at rest where a constant prediction would be, with what that gives."""
    for learning in case.learnings:
        if adversarial(learning):
            continue
        for head in learning.heads:
            loss, best = loss_of(learning, head), constant(head)
            if loss is None or best is None or loss.nonfinite:
                continue
            if loss.count >= (STUCK if case.outcome != "running" else STUCK_YET) and _rests(loss, best):
                yield learning, head, loss, best
                break


def _rests(loss: Loss, best: float) -> bool:
    """Above it by much it is something else: it diverges, or has not come down yet."""
    return AT_REST * best <= ended(loss) <= 1.3 * best and lowest(loss) >= 0.9 * best


def learned(learning: Learning, loss: Loss) -> bool:
    """It is clearly below where it began, and below what a constant prediction gives where that is known."""
    share = at_constant(learning, loss)
    if share is not None:
        return share < 0.8
    start = min(first(loss), began(loss))  # a first step may have thrown it up
    return start > 0 and ended(loss) < 0.7 * start


def flat(loss: Loss) -> bool:
    """It did not change by more than 2 % from the first third of the run to the last."""
    values = [value for _, value in loss.points]
    third = len(values) // 3
    if third < 3:
        return False
    early, late = fmean(values[:third]), fmean(values[-third:])
    return abs(early - late) <= 0.02 * max(abs(early), abs(late), 1e-12)


def roughness(values: Sequence[float]) -> float:
    """How far it swings, beside its level."""
    level = abs(median(values)) if values else 0.0
    return pstdev(values) / level if level > 0 and len(values) > 1 else 0.0


def adversarial(learning: Learning) -> bool:
    """Several optimizers, or losses of their own backward: none of them says alone how the training goes."""
    return len(learning.optimizers) > 1 or sum(1 for loss in learning.losses if loss.count > 2) > 1


def number(value: float | None) -> str:
    """As a person writes it."""
    if value is None:
        return "?"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}" if abs(value) < 100 else f"{value:.4g}"


def course(loss: Loss) -> str:
    """How it went, as evidence."""
    return f"the loss went from {number(first(loss))} to {number(ended(loss))} in {loss.count:,} steps"
