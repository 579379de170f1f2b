"""clip-too-tight: clipping makes nearly every gradient a hundred times smaller, and the model hardly moves.

What it sees
    `clip_grad_norm_` scales the gradient down at nearly every step, by a factor of a hundred and more on average, and
    the loss falls little.

Why training stops
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
from unstuck.rules.learning import curves, steps
from unstuck.rules.learning.measured import Learning, Loss, learnings
from unstuck.rules.rule import Rule

CALLS = 40
NEARLY_ALL = 0.9
FACTOR = 100.0


def decide(case: Case) -> Iterable[Finding]:
    for learning in learnings(case):
        loss, clips = learning.loss, learning.clips
        calls, clipped = clips.get("calls", 0), clips.get("clipped", 0)
        if loss is None or loss.nonfinite or calls < CALLS or clipped < NEARLY_ALL * calls or clips.get("scaled"):
            continue
        factor = clips["sum_ratio"] / clipped
        if factor >= FACTOR and _costs(learning, loss):
            yield _finding(learning, loss, factor)


def _costs(learning: Learning, loss: Loss) -> bool:
    if any(optimizer.kind in steps.ADAPTIVE for optimizer in learning.optimizers):
        return curves.flat(loss) and not curves.learned(learning, loss)
    share = curves.at_constant(learning, loss)
    return curves.ended(loss) > 0.5 * curves.first(loss) and (share is None or share > 0.5)


def _finding(learning: Learning, loss: Loss, factor: float) -> Finding:
    clips, number = learning.clips, curves.number
    usual = factor * clips["max_norm"]
    site = clips.get("site")
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="warning",
        confidence=0.85,
        title=f"Clipping to {clips['max_norm']:g} makes nearly every gradient {factor:,.0f} times smaller",
        evidence=(
            f"{clips['clipped']:,} of {clips['calls']:,} gradients were scaled down to a norm of "
            f"{clips['max_norm']:g}; they were {number(usual)} on average, "
            f"{number(clips['hardest'] * clips['max_norm'])} at most",
            curves.course(loss),
        ),
        where=learning.where((site[0], site[1], site[2]) if site else loss.site),
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
