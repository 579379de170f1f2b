"""clip-too-tight: clipping makes nearly every gradient a hundred times smaller, and the model hardly moves.

What it sees
    `clip_grad_norm_` scales the gradient down at nearly every step, by a factor of a hundred or more on average, and
    the loss falls little.

Why it matters
    Clipping is meant for the rare gradient that is far too large. Where it acts at every step, the step size is the
    learning rate times `max_norm`, however far there is to go.

Evidence
    How many calls scaled the gradient down, by how much on average and at most, the limit, and the loss.

Fix
    A limit somewhat above the usual norm of the gradient, which the finding names.

When it is wrong
    Adam and its relatives undo a constant factor: with them it is reported only where the loss does not fall at all. A
    loss that falls well is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss
from unstuck.recorder.records.numerics import Clips
from unstuck.rules.rule import Rule
from unstuck.rules.training import (
    ADAPTIVE_OPTIMIZERS,
    course,
    end_mean,
    first_value,
    has_learned,
    is_flat,
    main_loss,
    number,
    share_of_constant,
    where,
)

MIN_CALLS = 40  # so that the first steps, whose gradients are large, do not decide
MIN_CLIPPED_SHARE = 0.9  # of the calls
MIN_CLIP_FACTOR = 100.0  # on average


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss, clips = main_loss(learning), learning.clips
        if loss is None or loss.nonfinite or clips is None or clips.calls < MIN_CALLS or clips.scaled:
            continue
        tight = clips.clipped >= MIN_CLIPPED_SHARE * clips.calls and clips.sum_ratio >= MIN_CLIP_FACTOR * clips.clipped
        if tight and _falls_little(learning, loss):
            yield _finding(learning, loss, clips)


def _falls_little(learning: Learning, loss: Loss) -> bool:
    if any(optimizer.kind in ADAPTIVE_OPTIMIZERS for optimizer in learning.optimizers):
        return is_flat(loss) and not has_learned(learning, loss)
    share = share_of_constant(learning, loss)
    return end_mean(loss) > 0.5 * first_value(loss) and (share is None or share > 0.5)


def _finding(learning: Learning, loss: Loss, clips: Clips) -> Finding:
    limit, factor = clips.max_norm, clips.sum_ratio / clips.clipped
    usual = factor * limit
    wanted = f"{float(f'{usual * 2:.1g}'):g}"
    return RULE.finding(
        severity="warning",
        confidence=0.85,
        title=f"Clipping to {limit:g} makes nearly every gradient {factor:,.0f} times smaller",
        evidence=(
            f"{clips.clipped:,} of {clips.calls:,} gradients were scaled down to a norm of {limit:g}; they were "
            f"{number(usual)} on average, {number(clips.hardest * limit)} at most",
            course(loss),
        ),
        where=where(learning, clips.site or loss.site),
        fix=Fix(
            f"Set max_norm above the usual norm, to about {wanted}, or remove the clipping to see what it does.",
            setting="clipping",
            value=wanted,
        ),
    )


RULE = Rule("clip-too-tight", "learning", decide, explains=frozenset(("learning-rate-too-low",)), gathers=True)
