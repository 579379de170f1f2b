"""clip-before-unscale: gradients are clipped while they are still multiplied by the loss scale.

What it sees
    `clip_grad_norm_` runs between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` without
    `scaler.unscale_(optimizer)` before it, and it does clip.

Why it matters
    At that moment gradients are larger by the loss scale (65,536 at first), so every one of them is cut down to the
    limit. The division by the scale comes afterwards: the update gets the limit divided by the scale.

Evidence
    How many calls came before the unscaling, how hard they clip, the scale, and the norm that is left.

Fix
    Call `scaler.unscale_(optimizer)` right before the clipping.

When it is wrong
    A limit that is multiplied by the scale on purpose does not clip much, and is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.numerics import Clips
from unstuck.rules.numerics.nan_causes import loss_scale
from unstuck.rules.rule import Rule
from unstuck.rules.training import ADAPTIVE_OPTIMIZERS, where

MIN_CALLS = 5
MIN_SCALED_SHARE = 0.8  # of the calls, before the unscaling: a call for logging alone is no mistake
MIN_CLIP_FACTOR = 30.0  # on average: a limit that was multiplied by the scale does not clip so hard


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        clips, scale = learning.clips, loss_scale(learning)
        if clips is not None and scale is not None and scale > 1 and _too_early(clips):
            yield _finding(learning, clips, scale)


def _too_early(clips: Clips) -> bool:
    if clips.calls < MIN_CALLS or clips.scaled < MIN_SCALED_SHARE * clips.calls:
        return False
    return clips.clipped >= MIN_SCALED_SHARE * clips.scaled / 2 and clips.sum_ratio >= MIN_CLIP_FACTOR * clips.clipped


def _finding(learning: Learning, clips: Clips, scale: float) -> Finding:
    left = clips.max_norm / scale
    kinds = [optimizer.kind for optimizer in learning.optimizers]
    adaptive = bool(kinds) and all(kind in ADAPTIVE_OPTIMIZERS for kind in kinds)
    return RULE.finding(
        severity="warning" if adaptive else "error",
        confidence=0.95,
        title=f"Gradients are clipped before they are unscaled: at most a norm of {left:.2g} is left",
        evidence=(
            f"{clips.scaled:,} of {clips.calls:,} clip_grad_norm_ calls came before scaler.unscale_",
            f"{clips.clipped:,} of them clipped, on average to 1/{clips.sum_ratio / clips.clipped:,.0f} of the "
            "gradient's norm",
            f"the limit of {clips.max_norm:g} divided by the scale of {scale:,.0f} leaves a norm of {left:.2g}",
            f"{kinds[0]} divides that out again, so only the clipping itself is lost" if adaptive else "",
        ),
        where=where(learning, clips.site),
        fix="Call `scaler.unscale_(optimizer)` right before the clipping.",
    )


RULE = Rule(
    "clip-before-unscale",
    "numerics",
    decide,
    explains=frozenset(("clip-too-tight", "learning-rate-too-low")),
    gathers=True,
)
