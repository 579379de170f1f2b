"""clip-too-tight: clipping makes nearly every gradient a hundred times smaller, and the model hardly moves.

What it sees
    `clip_grad_norm_` scales the gradient down at nearly every step, by a factor of a hundred or more on average, and
    the loss falls little. Or the script does so itself (`min(1, limit / norm)`, `(limit / norm).clamp(max=1)`, `limit /
    norm` where the norm is above the limit), with a norm that is that of the whole gradient (on the CPU only).

Why it matters
    Clipping is meant for the rare gradient that is far too large. Where it acts at every step, the step size is the
    learning rate times `max_norm`, however far there is to go.

Evidence
    How many calls scaled the gradient down, by how much on average and at most, the limit, and the loss.

Fix
    A limit somewhat above the usual norm of the gradient, which the finding names.

When it is wrong
    Adam and its relatives undo a constant factor: with them it is reported only where the loss does not fall at all. A
    loss that falls well is not reported. Nor is clipping that the script writes out itself where its steps are not
    small: its rate makes up for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss
from unstuck.recorder.records.numerics import Clips
from unstuck.rules.rule import Rule
from unstuck.rules.training import (
    course,
    falls_little,
    is_flat,
    main_loss,
    number,
    several_losses,
    update_ratios,
    where,
)

MIN_CALLS = 40  # so that the first steps, whose gradients are large, do not decide
MIN_CLIPPED_SHARE = 0.9  # of the calls
MIN_CLIP_FACTOR = 100.0  # on average
MAX_UPDATE_RATIO = 1e-4  # of the weight: a healthy step is around 0.001


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss, clips = main_loss(learning), learning.clips
        if loss is None or loss.nonfinite or clips is None or clips.calls < MIN_CALLS or clips.scaled:
            continue
        tight = clips.clipped >= MIN_CLIPPED_SHARE * clips.calls and clips.sum_ratio >= MIN_CLIP_FACTOR * clips.clipped
        if tight and falls_little(learning, loss) and (not clips.scales or _hardly_moves(learning, loss)):
            yield _finding(learning, loss, clips)


def _hardly_moves(learning: Learning, loss: Loss) -> bool:
    """A script that clips by itself may have a rate that makes up for it, and an optimizer of its own."""
    matrices = [parameter for parameter in learning.parameters if len(parameter.shape) > 1]
    moves = [ratio for matrix in matrices for ratio in update_ratios(matrix) if ratio > 0]  # 0: between two updates
    return not several_losses(learning) and (median(moves) < MAX_UPDATE_RATIO if moves else is_flat(loss))


def _finding(learning: Learning, loss: Loss, clips: Clips) -> Finding:
    limit, factor = clips.max_norm, clips.sum_ratio / clips.clipped
    usual = factor * limit
    wanted = f"{float(f'{usual * 2:.1g}'):g}"
    return RULE.finding(
        severity="warning",
        confidence=0.85,
        title=f"Clipping to {limit:.3g} makes nearly every gradient {factor:,.0f} times smaller",
        evidence=(
            f"{clips.clipped:,} of {clips.calls:,} gradients were scaled down to a norm of {limit:.3g}; they were "
            f"{number(usual)} on average, {number(clips.hardest * limit)} at most",
            course(loss),
        ),
        where=where(learning, clips.site or loss.site),
        fix=Fix(
            f"Set the limit above the usual norm, to about {wanted}, or remove the clipping to see what it does.",
            setting="clipping",
            value=wanted,
        ),
    )


RULE = Rule("clip-too-tight", "learning", decide, explains=frozenset(("learning-rate-too-low",)), gathers=True)
