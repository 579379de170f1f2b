"""clip-too-tight: clipping makes nearly every gradient a hundred times smaller, and the model hardly moves.

What it sees
    `clip_grad_norm_` scales the gradient down at nearly every step, by a factor of a hundred and more on average, and
    the loss falls little.

Why it matters
    Clipping is there for the rare gradient that is far too large. Where it acts at every step it sets the size of each
    step itself: learning rate times `max_norm`, however far there is to go.

Evidence
    At how many calls the gradient was scaled, by how much on average and at most, the limit; the loss.

Fix
    A limit somewhat above the usual norm of the gradient, which is named.

When it is wrong
    Adam and its kin undo a constant factor: with them it is reported only where the loss stands still. A loss that
    falls well all the same is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss
from unstuck.recorder.records.numerics import Clips
from unstuck.rules.learning import curves, steps
from unstuck.rules.learning.measured import main_loss, where
from unstuck.rules.rule import Rule

CALLS = 40
"""Of clip_grad_norm_, so that the first steps of a training, whose gradients are large, do not decide."""
NEARLY_ALL = 0.9
"""Share of the calls; clipping is meant for the rare gradient."""
FACTOR = 100.0
"""Times that the gradients were above the limit, on average."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss, clips = main_loss(learning), learning.clips
        if loss is None or loss.nonfinite or clips is None or clips.calls < CALLS or clips.scaled:
            continue
        if clips.clipped < NEARLY_ALL * clips.calls or clips.sum_ratio < FACTOR * clips.clipped:
            continue
        if _costs(learning, loss):
            yield _finding(learning, loss, clips)


def _costs(learning: Learning, loss: Loss) -> bool:
    if any(optimizer.kind in steps.ADAPTIVE for optimizer in learning.optimizers):
        return curves.flat(loss) and not curves.learned(learning, loss)
    share = curves.at_constant(learning, loss)
    return curves.ended(loss) > 0.5 * curves.first(loss) and (share is None or share > 0.5)


def _finding(learning: Learning, loss: Loss, clips: Clips) -> Finding:
    number, limit = curves.number, clips.max_norm
    factor = clips.sum_ratio / clips.clipped
    usual = factor * limit
    return RULE.finding(
        severity="warning",
        confidence=0.85,
        title=f"Clipping to {limit:g} makes nearly every gradient {factor:,.0f} times smaller",
        evidence=(
            f"{clips.clipped:,} of {clips.calls:,} gradients were scaled down to a norm of {limit:g}; they were "
            f"{number(usual)} on average, {number(clips.hardest * limit)} at most",
            curves.course(loss),
        ),
        where=where(learning, clips.site or loss.site),
        fix=Fix(
            f"Set max_norm above the usual norm: about {_rounded(usual * 2):g}, or take the clipping out to see it."
        ),
        seen_by="flight",
    )


def _rounded(value: float) -> float:
    return float(f"{value:.1g}")


RULE = Rule(
    "clip-too-tight",
    "learning",
    decide,
    explains=frozenset(("learning-rate-too-low", "no-better-than-constant", "still-improving")),
    gathers=True,
)
