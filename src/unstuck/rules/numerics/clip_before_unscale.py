"""clip-before-unscale: gradients are clipped while they are still multiplied by the loss scale.

What it sees
    `clip_grad_norm_` is called between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` without
    `scaler.unscale_(optimizer)` before it, and it does clip.

Why it matters
    Gradients are 65,536 times too large at that moment (the scale), so every one of them is cut down to the limit; the
    division by the scale comes after it, and what is left for the update is the limit divided by the scale.

Evidence
    How many calls came before the unscaling, by how much they cut, the scale, and the norm that is left.

Fix
    Call `scaler.unscale_(optimizer)` right before the clipping.

When it is wrong
    A limit that was multiplied by the scale on purpose does not clip much, and is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.numerics import Clips
from unstuck.rules.learning.measured import loss_scale, where
from unstuck.rules.rule import Rule

CALLS = 5
"""Of clip_grad_norm_."""
SHARE = 0.8
"""Of them before the unscaling: a call for logging alone is no mistake."""
HARD = 30.0
"""Times above the limit, on average: a limit that was multiplied by the scale does not cut so hard."""
ADAPTIVE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta", "Adafactor", "Muon")


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        clips, scale = learning.clips, loss_scale(learning)
        if clips is not None and scale is not None and scale > 1 and _too_early(clips):
            yield _finding(learning, clips, scale)


def _too_early(clips: Clips) -> bool:
    if clips.calls < CALLS or clips.scaled < SHARE * clips.calls or clips.clipped < SHARE * clips.scaled / 2:
        return False
    return clips.sum_ratio >= HARD * clips.clipped


def _finding(learning: Learning, clips: Clips, scale: float) -> Finding:
    left = clips.max_norm / scale
    kinds = [each.kind for each in learning.optimizers]
    adaptive = bool(kinds) and all(kind in ADAPTIVE for kind in kinds)
    return RULE.finding(
        severity="warning" if adaptive else "error",
        confidence=0.95,
        title=f"Gradients are clipped before they are unscaled: a norm of {left:.2g} at most is left",
        evidence=(
            f"{clips.scaled:,} of {clips.calls:,} calls of clip_grad_norm_ came before scaler.unscale_",
            f"{clips.clipped:,} of them cut the gradient, on average to 1/{clips.sum_ratio / clips.clipped:,.0f} of "
            "its norm",
            f"the limit of {clips.max_norm:g} divided by the scale of {scale:,.0f} leaves a norm of {left:.2g}",
            *(("Adam divides that out again, so only the clipping itself is lost",) if adaptive else ()),
        ),
        where=where(learning, clips.site),
        fix=Fix("Call `scaler.unscale_(optimizer)` right before the clipping."),
        seen_by="flight",
    )


RULE = Rule(
    "clip-before-unscale",
    "numerics",
    decide,
    explains=frozenset(("clip-too-tight", "learning-rate-too-low", "no-better-than-constant", "still-improving")),
    gathers=True,
)
