"""exploding-gradient: the gradient grows through layers or time steps until one update ruins the weights.

What it sees
    At the start: a weight whose gradient, times the weight, is more than a hundred times the loss itself, and a loss
    that is ruined by the updates that follow. A layer that is used once gives about 1 there, whatever the scale of
    data and loss; the product of many Jacobians (a recurrent net over a long sequence) gives thousands. Later: a
    gradient a hundred times its usual norm, after which the loss is ten times its level or no number at all. Or weights
    that became ten times larger between two looks, after which the loss is no number.

Why it matters
    An update of many times the weight's own size destroys what was learned. The next forward pass overflows: the loss
    is NaN from then on, and every parameter with it.

Evidence
    The parameter, the norm of its gradient and of its weight, the size of the update, the step, and what became of the
    loss.

Fix
    Clip the gradient (`torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`) between backward and step; start a
    recurrent weight at spectral radius 1 or below; gates (LSTM, GRU) or normalisation for long chains.

When it is wrong
    The first hundred steps are judged only by the first gradients, not by jumps. Trainings with several losses (GAN,
    reinforcement learning) are left alone. A rate that is too high from the start is learning-rate-too-high.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.numerics import GrownWeight
from unstuck.rules.learning.measured import loss_site, main_loss, where
from unstuck.rules.numerics.exploding import Explosion, exploded
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        found = exploded(learning, case)
        if found is not None:
            yield _finding(learning, found)


def _finding(learning: Learning, found: Explosion) -> Finding:
    birth = found.origin.birth if found.origin is not None else None
    site = birth.site if birth is not None else loss_site(learning)
    step = birth.step if birth is not None else found.step
    forward = found.origin.line if found.origin is not None else None
    clips = learning.clips
    return RULE.finding(
        severity="error",
        confidence=0.93 if found.parameter is not None else 0.8,
        title=_title(found),
        evidence=tuple(_evidence(learning, found)),
        where=where(learning, site, step=step),
        fix=Fix(
            "Clip the gradient between backward and step: `torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`"
            + ("." if clips is None or not clips.calls else f"; the present limit of {clips.max_norm:g} is no help.")
        ),
        seen_by="flight",
        also=(where(learning, forward, step=step),) if forward is not None and forward != site else (),
    )


def _title(found: Explosion) -> str:
    result = "the loss is no number" if found.origin is not None else f"the loss is {found.worse:,.0f} times larger"
    if found.parameter is not None:
        name = found.parameter.name or f"a weight of shape {list(found.parameter.shape)}"
        return f"The gradient explodes: {found.norm:,.4g} at {name}, and {result}"
    if found.usual and found.norm > 10 * found.usual:
        times = found.norm / found.usual
        return f"The gradient explodes at step {found.step:,}: {times:,.0f} times its usual norm, {result}"
    return f"An update ruins the weights, and {result}"


def _evidence(learning: Learning, found: Explosion) -> Iterable[str]:
    parameter = found.parameter
    if parameter is not None:
        yield (
            f"{parameter.name or parameter.shape}: gradient of norm {found.norm:,.4g} at step {found.step:,}, for a "
            f"weight of norm {parameter.weights[0]:,.4g}: together {found.steepness:,.0f} times the loss"
        )
        if parameter.moves and parameter.moves[0][1] > parameter.weights[0]:
            yield (
                f"its first update has norm {parameter.moves[0][1]:,.4g}: "
                f"{parameter.moves[0][1] / parameter.weights[0]:,.0f} times the weight itself"
            )
    elif found.usual:
        usual = f"before that its median was {found.usual:,.4g}"
        yield f"the gradient has norm {found.norm:,.4g} at step {found.step:,}; {usual}"
    origin = found.origin
    if origin is not None:
        if isinstance(origin.part, GrownWeight):
            grown = origin.part
            grew = f"{grown.before:,.4g} to {grown.now:,.4g}"
            yield f"{grown.name or 'a weight'} grew from norm {grew} since it was last read"
        yield origin.toll()
    else:
        loss = main_loss(learning)
        if loss is not None:
            yield f"the loss began at {loss.first[0]:,.4g}; it is {loss.last:,.4g} now"
    if learning.clips is None or not learning.clips.calls:
        yield "gradients are not clipped"


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
            "no-better-than-constant",
        )
    ),
    gathers=True,
)
