"""Whether gradients explode, and which parameter shows it: read by the rule, and by those that must not claim it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import log
from statistics import fmean, median, pstdev

from unstuck.model import Case
from unstuck.recorder.records.learning import Learning, Loss, Parameter
from unstuck.rules.learning.measured import main_loss, owned, update_ratios
from unstuck.rules.numerics.broken import GROWN, Origin, origins

STEEP = 100.0
"""‖g‖·‖w‖ beside the loss, at the start. About 1 for a layer used once, whatever the scale of data and loss; the number
of steps for a recurrent weight. Beyond this the product of many Jacobians has run away."""
JUMP = 100.0
"""Times the usual norm of the whole gradient."""
SIGMAS, SPREAD = 4.0, 0.3
"""Standard deviations of the logarithm of that norm, and the least that one of them is taken for."""
SETTLED = 100
"""Steps before a jump can be told from the start of a training."""
READINGS = 20
"""Of the gradient before it."""
EARLY = 5
"""First updates, and losses after them."""


@dataclass(frozen=True)
class Explosion:
    parameter: Parameter | None
    step: int
    norm: float
    """Of the gradient."""
    steepness: float
    usual: float
    """Norm of the whole gradient before the jump; 0: it was so from the start."""
    origin: Origin | None
    """The loss that became no number of it."""
    worse: float
    """How many times the loss became larger."""


def exploded(learning: Learning, case: Case) -> Explosion | None:
    """None where gradients are well, where nothing came of it, or where the rate alone did it."""
    loss = main_loss(learning)
    if loss is None or len(learning.losses) > 2:
        return None
    origin = next((each for each in origins(learning, case) if each.kind in ("growth", "gradient", "unknown")), None)
    if any(each.kind in ("input", "labels", "operation") for each in origins(learning, case)):
        return None
    return _at_start(learning, loss, origin) or _later(learning, loss, origin)


def _at_start(learning: Learning, loss: Loss, origin: Origin | None) -> Explosion | None:
    """The first gradients are far larger than loss and weights can explain."""
    if not loss.first or not loss.first[0] or len(learning.losses) > 1:
        return None
    steepest: tuple[float, Parameter] | None = None
    for parameter in _matrices(learning):
        step, norm = parameter.grads[0]
        if step <= 1 and _number(norm):
            steepness = norm * parameter.weights[0] / abs(loss.first[0])
            if steepest is None or steepness > steepest[0]:
                steepest = (steepness, parameter)
    if steepest is None or steepest[0] < STEEP:
        return None
    worse = max(loss.first[: EARLY + 1]) / abs(loss.first[0])
    broke = origin is not None and origin.birth.step <= SETTLED
    ratios = update_ratios(steepest[1])[:EARLY]
    if not broke and not (worse > 10 and max(ratios, default=0.0) > 1):
        return None
    parameter = steepest[1]
    return Explosion(parameter, parameter.grads[0][0], parameter.grads[0][1], steepest[0], 0.0, origin, worse)


def _later(learning: Learning, loss: Loss, origin: Origin | None) -> Explosion | None:
    """Gradients were well for long, then jumped, and the loss with them."""
    if largest_update(learning) > 0.5:
        return None  # the rate is too high from the start
    norms = _totals(learning)
    if origin is not None and origin.kind == "growth":
        return _grew([(step, norm) for step, norm in norms if step < origin.birth.step], origin)
    for index in range(READINGS, len(norms)):
        step, norm = norms[index]
        before = [value for _, value in norms[:index]]
        if step < SETTLED or not _jumped(before, norm):
            continue
        worse = _worse(loss, step)
        if (origin is not None and 0 <= origin.birth.step - step <= SETTLED) or worse > GROWN:
            return Explosion(None, step, norm, 0.0, median(before), origin, worse)
    return None


def _grew(before: list[tuple[int, float]], origin: Origin) -> Explosion:
    usual = median(norm for _, norm in before) if before else 0.0
    step, norm = before[-1] if before else (origin.birth.step, 0.0)
    return Explosion(None, step, norm, 0.0, usual, origin, 0.0)


def _jumped(before: list[float], norm: float) -> bool:
    logs = [log(value) for value in before]
    return norm >= JUMP * median(before) and log(norm) - fmean(logs) >= SIGMAS * max(pstdev(logs), SPREAD)


def _worse(loss: Loss, step: int) -> float:
    """How many times its level before that step the loss is now."""
    level = median([value for at, value in loss.points if at < step] or [0.0])
    return median(loss.recent[-8:] or [loss.last]) / level if level > 0 else 0.0


def largest_update(learning: Learning) -> float:
    """Among the first ones, beside the weight's own size."""
    ratios = [ratio for each in _matrices(learning) for ratio in update_ratios(each)[:EARLY] if _number(ratio)]
    return max(ratios, default=0.0)


def _totals(learning: Learning) -> list[tuple[int, float]]:
    """Norm of the whole gradient, at each step where it was read and is one."""
    squares: dict[int, float] = defaultdict(float)
    for parameter in owned(learning):
        for step, norm in parameter.grads:
            squares[step] += norm * norm
    norms = [(step, square**0.5) for step, square in sorted(squares.items())]
    return [(step, norm) for step, norm in norms if _number(norm) and norm > 0]


def _matrices(learning: Learning) -> list[Parameter]:
    return [p for p in owned(learning) if len(p.shape) >= 2 and p.grads and p.weights and p.module != "Embedding"]


def _number(value: float) -> bool:
    return value - value == 0.0
