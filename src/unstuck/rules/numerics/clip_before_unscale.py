"""clip-before-unscale: gradients are clipped while they are still multiplied by the loss scale.

What it sees
    `clip_grad_norm_` runs between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` without
    `scaler.unscale_(optimizer)` before it, and it does clip. Or a script that multiplies its loss with a scale, divides
    by it again, and clips without that function: at the line where it does, the norm is that of the gradient as the
    backward pass left it, many times the limit, and the loss falls little.

Why it matters
    At that moment gradients are larger by the loss scale (65,536 at first), so every one of them is cut down to the
    limit. The division by the scale comes afterwards: the update gets the limit divided by the scale.

Evidence
    How many calls came before the unscaling, how hard they clip, the scale, and the norm that is left.

Fix
    Call `scaler.unscale_(optimizer)` right before the clipping; without a GradScaler, divide by the scale first.

When it is wrong
    A limit that is multiplied by the scale on purpose does not clip much, and is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning, Loss
from unstuck.recorder.records.numerics import Clips
from unstuck.rules.numerics.nan_causes import loss_scale
from unstuck.rules.rule import Rule
from unstuck.rules.training import ADAPTIVE_OPTIMIZERS, end_mean, falls_little, first_value, main_loss, number, where

MIN_CALLS = 5
MIN_SCALED_SHARE = 0.8  # of the calls, before the unscaling: a call for logging alone is no mistake
MIN_OWN_LOSSES = 100  # where the script clips by itself: what it does with the result is not seen
MIN_CLIP_FACTOR = 30.0  # on average: a limit that was multiplied by the scale does not clip so hard


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        clips, loss = learning.clips, main_loss(learning)
        if clips is None or not _too_early(clips):
            continue
        scale = clips.scales[-1] if clips.scales else loss_scale(learning)
        if scale is None or scale <= 1:
            continue
        if not clips.scales or (loss is not None and loss.count >= MIN_OWN_LOSSES and falls_little(learning, loss)):
            yield _finding(learning, clips, loss, scale)


def _too_early(clips: Clips) -> bool:
    if clips.calls < MIN_CALLS or clips.scaled < MIN_SCALED_SHARE * clips.calls:
        return False
    return clips.clipped >= MIN_SCALED_SHARE * clips.scaled / 2 and clips.sum_ratio >= MIN_CLIP_FACTOR * clips.clipped


def _finding(learning: Learning, clips: Clips, loss: Loss | None, scale: float) -> Finding:
    left = clips.max_norm / scale
    kinds = [optimizer.kind for optimizer in learning.optimizers]
    adaptive = bool(kinds) and all(kind in ADAPTIVE_OPTIMIZERS for kind in kinds)
    return RULE.finding(
        severity="warning" if adaptive else "error",
        confidence=0.95,
        title=f"Gradients are clipped before they are unscaled: at most a norm of {left:.2g} is left",
        evidence=(
            f"the script multiplies its loss by {scale:,.0f}, and clipped {clips.scaled:,} of {clips.calls:,} "
            "gradients as the backward pass left them, before it divides by that"
            if clips.scales
            else f"{clips.scaled:,} of {clips.calls:,} clip_grad_norm_ calls came before scaler.unscale_",
            f"{clips.clipped:,} of them clipped, on average to 1/{clips.sum_ratio / clips.clipped:,.0f} of the "
            "gradient's norm",
            f"the limit of {clips.max_norm:g} divided by the scale of {scale:,.0f} leaves a norm of {left:.2g}",
            f"{kinds[0]} divides that out again, so only the clipping itself is lost" if adaptive else "",
            f"the loss, without that factor, went from {number(first_value(loss) / clips.scales[0])} to "
            f"{number(end_mean(loss) / scale)} in {loss.count:,} steps"
            if clips.scales and loss is not None
            else "",
        ),
        where=where(learning, clips.site),
        fix="Divide the gradients by the scale first, then compute their norm and clip."
        if clips.scales
        else "Call `scaler.unscale_(optimizer)` right before the clipping.",
    )


RULE = Rule(
    "clip-before-unscale",
    "numerics",
    decide,
    explains=frozenset(("clip-too-tight", "learning-rate-too-low")),
    gathers=True,
)
