"""exploding-gradient: the gradient grows through layers or time steps until one update ruins the weights.

What it sees
    At the start: a weight whose gradient norm times its own norm is more than a hundred times the loss, and updates
    that ruin the loss, or the weight itself, or a loss far above that of a constant prediction that stays there. For a
    layer that is used once this product is about the loss itself, whatever the scale of data and loss; for a long chain
    of Jacobians (a recurrent net over a long sequence) it is thousands of times that. Or a first loss of a hundred
    times that of a constant prediction, whose gradient is a hundred times the weight, and NaN after an update that is
    many times the weight: there the forward pass makes what it gets larger, layer by layer.
    Later: a gradient of a hundred times its usual norm, after which the loss is ten times higher or NaN. Or weights
    whose norm grew tenfold between two readings, after which the loss is NaN.

Why it matters
    An update of many times the weight's own size destroys what was learned. The next forward pass overflows: from then
    on the loss and every parameter are NaN.

Evidence
    The parameter, the norms of its gradient, weight and update, the step, and what became of the loss.

Fix
    Clip the gradient between backward and step (`torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`); initialize
    a recurrent weight with spectral radius 1 or below; use gates (LSTM, GRU) or normalization for long chains. Where
    the first outputs are already far too large: weights scaled by their fan-in, a mean instead of a sum, a
    normalization.

When it is wrong
    The first hundred steps are judged only by the first gradients, not by jumps. Trainings with several losses (GAN,
    reinforcement learning) are left out. A learning rate that is too high from the start is learning-rate-too-high.
    NaN that the script made of finite numbers before any weight met them is nonfinite-born, even where weights grew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite, log
from statistics import fmean, median, pstdev

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, Parameter
from unstuck.recorder.records.numerics import GrownWeight
from unstuck.rules.numerics.nan_causes import MIN_GROWTH, Cause, nan_causes
from unstuck.rules.rule import Rule
from unstuck.rules.training import (
    FIRST_UPDATES,
    constant_loss,
    end_mean,
    explodes_at_first,
    first_value,
    largest_first_update,
    loss_site,
    main_loss,
    measured_matrices,
    optimized,
    share_of_constant,
    update_ratios,
    where,
    worse_than_constant,
)

MIN_STEEPNESS = 100.0  # gradient norm times weight norm, compared with the loss: about 1 for a layer used once
MIN_WORSE, MIN_RUINED = 10.0, 10.0  # times: the loss after the first updates, and an update compared with its weight
MIN_START = 1e4  # times what a constant prediction gives: the first loss
MIN_OUTSIZED = 100.0  # times what a constant prediction gives: a first loss that NaN follows within few updates
MIN_JUMP = 100.0  # times the usual norm of the whole gradient …
MIN_JUMP_SIGMAS, MIN_SIGMA = 4.0, 0.3  # … and in standard deviations of its logarithm
SETTLED_STEPS = 100  # before that a jump cannot be told from the start of a training
MIN_READINGS = 20  # of the gradient before a jump
OUTSIZED_FIX = (
    "Keep what a layer gives as large as what it gets: draw weights with a deviation of 1/sqrt(fan-in), average where "
    "many rows are summed (neighbours, time steps), or normalize after each layer (`LayerNorm`)."
)


@dataclass(frozen=True)
class Explosion:
    step: int
    norm: float
    """Of the gradient."""
    cause: Cause | None
    """Of the loss that became NaN by it."""
    parameter: Parameter | None = None
    steepness: float = 0.0
    usual: float = 0.0
    """Norm of the whole gradient before the jump; 0: it was like this from the start."""
    worse: float = 0.0
    """How many times larger the loss became."""
    ratio: float = 0.0
    """The largest of the first updates, compared with the weight."""
    outsized: float = 0.0
    """How many times that of a constant prediction the first loss is, where that is why."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss, causes = main_loss(learning), list(nan_causes(learning, case))
        if loss is None or len(learning.losses) > 2:
            continue
        if any(cause.kind in ("input", "labels", "operation") for cause in causes):
            continue
        cause = next(iter(causes), None)
        explosion = _at_start(learning, loss, cause, _is_useless(learning, loss, case)) or _later(learning, loss, cause)
        if explosion is not None:
            yield _finding(learning, loss, explosion)


def _is_useless(learning: Learning, loss: Loss, case: Case) -> bool:
    """The loss began far above that of a constant prediction (the forward pass explodes too) and never came down."""
    share = share_of_constant(learning, loss)
    if share is None or abs(first_value(loss)) < MIN_START * end_mean(loss) / max(share, 1e-30):
        return False
    return any(other is learning for other in worse_than_constant(case))


def _at_start(learning: Learning, loss: Loss, cause: Cause | None, useless: bool) -> Explosion | None:
    """The first gradients are far larger than loss and weights can explain."""
    if not loss.first or not loss.first[0] or len(learning.losses) > 1:
        return None
    start = abs(loss.first[0])
    early = [p for p in measured_matrices(learning) if p.grads[0][0] <= 1 and isfinite(p.grads[0][1])]
    if not early:
        return None
    parameter = max(early, key=lambda p: p.grads[0][1] * p.weights[0])
    (step, norm), weight = parameter.grads[0], parameter.weights[0]
    steepness = norm * weight / start
    worse = max(loss.first[: FIRST_UPDATES + 1]) / start
    became_nan = cause is not None and cause.birth.step <= SETTLED_STEPS
    ratio = max(update_ratios(parameter)[:FIRST_UPDATES], default=0.0)
    if steepness < MIN_STEEPNESS:
        outsized = _outsized(learning, loss)
        if became_nan and ratio > MIN_RUINED and outsized >= MIN_OUTSIZED and explodes_at_first(parameter):
            return Explosion(step, norm, cause, parameter, steepness, ratio=ratio, outsized=outsized)
        return None
    if became_nan or (worse > MIN_WORSE and ratio > 1) or ratio > MIN_RUINED or useless:
        return Explosion(step, norm, cause, parameter, steepness, worse=worse, ratio=ratio)
    return None


def _outsized(learning: Learning, loss: Loss) -> float:
    """The first loss, compared with that of the best constant prediction; 0 where that is not known."""
    best = next((constant_loss(head) for head in learning.heads if head.called == loss.site), None)
    return abs(loss.first[0]) / best if best else 0.0


def _later(learning: Learning, loss: Loss, cause: Cause | None) -> Explosion | None:
    """Gradients were fine for long, then jumped, and the loss with them."""
    if largest_first_update(learning) > 0.5:
        return None  # the rate is too high from the start
    norms = _whole_gradient(learning)
    if cause is not None and cause.kind == "growth":
        before = [(step, norm) for step, norm in norms if step < cause.birth.step]
        step, norm = before[-1] if before else (cause.birth.step, 0.0)
        return Explosion(step, norm, cause, usual=median(norm for _, norm in before) if before else 0.0)
    for index in range(MIN_READINGS, len(norms)):
        step, norm = norms[index]
        earlier = [value for _, value in norms[:index]]
        if step < SETTLED_STEPS or not _jumped(earlier, norm):
            continue
        worse = _worse(loss, step)
        if (cause is not None and 0 <= cause.birth.step - step <= SETTLED_STEPS) or worse > MIN_GROWTH:
            return Explosion(step, norm, cause, usual=median(earlier), worse=worse)
    return None


def _jumped(before: list[float], norm: float) -> bool:
    logs = [log(value) for value in before]
    return norm >= MIN_JUMP * median(before) and log(norm) - fmean(logs) >= MIN_JUMP_SIGMAS * max(
        pstdev(logs), MIN_SIGMA
    )


def _worse(loss: Loss, step: int) -> float:
    """The loss now, compared with its level before that step."""
    level = median([value for at, value in loss.points if at < step] or [0.0])
    return median(loss.recent[-8:] or [loss.last]) / level if level > 0 else 0.0


def _whole_gradient(learning: Learning) -> list[tuple[int, float]]:
    """Norm of the whole gradient, at each step where it was read and is finite."""
    squares: dict[int, float] = defaultdict(float)
    for parameter in optimized(learning):
        for step, norm in parameter.grads:
            squares[step] += norm * norm
    norms = [(step, square**0.5) for step, square in sorted(squares.items())]
    return [(step, norm) for step, norm in norms if isfinite(norm) and norm > 0]


def _finding(learning: Learning, loss: Loss, explosion: Explosion) -> Finding:
    cause, clips = explosion.cause, learning.clips
    site = cause.birth.site if cause is not None else loss_site(learning)
    step = cause.birth.step if cause is not None else explosion.step
    forward = cause.line if cause is not None else None
    clipped = clips is not None and clips.calls > 0
    return RULE.finding(
        severity="error",
        confidence=0.93 if explosion.parameter is not None else 0.8,
        title=_title(explosion),
        evidence=(
            *_gradients(explosion),
            *_outcome(loss, cause),
            "" if clipped or explosion.outsized else "gradients are not clipped",
        ),
        where=where(learning, site, step=step),
        fix=OUTSIZED_FIX
        if explosion.outsized
        else Fix(
            "Clip the gradient between backward and step: `torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`"
            + (f"; the present limit of {clips.max_norm:g} is too high." if clips is not None and clipped else "."),
            setting="clipping",
            value="1.0",
        ),
        also=(where(learning, forward, step=step),) if forward is not None and forward != site else (),
    )


def _title(explosion: Explosion) -> str:
    cause, parameter = explosion.cause, explosion.parameter
    if cause is not None:
        result = f"the loss is {cause.value}"
    elif explosion.parameter is None or explosion.worse > MIN_WORSE:
        result = f"the loss is {explosion.worse:,.0f} times larger"
    elif explosion.ratio > MIN_RUINED:
        result = f"one update is {explosion.ratio:,.0f} times the weight itself"
    else:
        result = "the loss stays above that of a constant prediction"
    if parameter is not None:
        name = parameter.name or f"a weight of shape {list(parameter.shape)}"
        return f"The gradient explodes: its norm at {name} is {explosion.norm:,.4g}, and {result}"
    if explosion.usual and explosion.norm > 10 * explosion.usual:
        times = explosion.norm / explosion.usual
        return f"The gradient explodes at step {explosion.step:,}: {times:,.0f} times its usual norm, and {result}"
    return f"An update ruins the weights, and {result}"


def _gradients(explosion: Explosion) -> Iterable[str]:
    parameter = explosion.parameter
    if parameter is not None:
        weight = parameter.weights[0]
        yield (
            f"{parameter.name or parameter.shape}: gradient norm {explosion.norm:,.4g} at step {explosion.step:,}, "
            f"weight norm {weight:,.4g}"
            + ("" if explosion.outsized else f"; their product is {explosion.steepness:,.0f} times the loss")
        )
        if explosion.outsized:
            yield (
                f"the first loss is {explosion.outsized:,.0f} times that of a constant prediction: the outputs are "
                "that large before any update"
            )
        if parameter.moves and parameter.moves[0][1] > weight:
            update = parameter.moves[0][1]
            yield f"its first update has norm {update:,.4g}: {update / weight:,.0f} times the weight itself"
    elif explosion.usual:
        yield (
            f"the gradient has norm {explosion.norm:,.4g} at step {explosion.step:,}; its median before that was "
            f"{explosion.usual:,.4g}"
        )


def _outcome(loss: Loss, cause: Cause | None) -> Iterable[str]:
    if cause is None:
        yield f"the loss began at {loss.first[0]:,.4g} and is {loss.last:,.4g} now"
        return
    if isinstance(cause.part, GrownWeight):
        grown = cause.part
        yield f"the norm of {grown.name or 'a weight'} grew from {grown.before:,.4g} to {grown.now:,.4g}"
    yield cause.toll()


RULE = Rule(
    "exploding-gradient",
    "numerics",
    decide,
    explains=frozenset(
        (
            "nonfinite-born",
            "loss-spike",
            "loss-scale-collapsed",
            "learning-rate-too-high",
            "loss-oscillates",
            "dead-units",
            "saturated-units",
            "uncaught-exception",
        )
    ),
    gathers=True,
)
