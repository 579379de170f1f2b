"""loss-scale-collapsed: the loss scaler halves its scale again and again, because no gradient is ever finite.

What it sees
    `GradScaler` found infinite or NaN gradients in step after step: its scale has fallen below 1, or it skipped twelve
    steps in a row and more.

Why it matters
    A step whose gradients are not finite is skipped. Where every step is, nothing is learned at all; and no scale helps
    if the gradient overflows without any.

Evidence
    The scale at the start and now, how many updates there were, and how many steps in a row were skipped.

Fix
    Find what overflows in half precision: a loss summed over the batch, targets of the order of 10,000, a root at 0.
    Compute that part in float32, or use bfloat16, which needs no scaler.

When it is wrong
    A handful of skipped steps at the start is how the scaler finds its scale, and is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.learning.measured import main_loss, where
from unstuck.rules.numerics.broken import collapsed
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        scaler = learning.scaler
        if scaler is None or not collapsed(scaler):
            continue
        scale, first, row = scaler.scale, scaler.first, scaler.skipped_in_row
        loss = main_loss(learning)
        broken = f"{loss.nonfinite:,} losses were no number" if loss is not None and loss.nonfinite else ""
        yield RULE.finding(severity="error",
            confidence=0.93,
            title=f"The loss scale fell from {first:,.6g} to {scale:.3g}: gradients overflow",
            evidence=(
                f"scale {first:,.6g} at the start, {scale:.3g} after {scaler.updates:,} updates",
                *((f"the last {row:,} steps in a row were skipped for gradients that are not finite",) if row else ()),
                *((f"the loss itself is a number, last {loss.last:.4g}: it is the gradient that overflows",)
                  if loss is not None and not broken and loss.count else ()),
                *((broken,) if broken else ()),
            ),
            where=where(learning, loss.site if loss is not None else None),
            fix=Fix(
                "Compute the loss in float32 and as a mean, with targets of the order of 1; or use bfloat16, which "
                "needs no scaler."
            ),
            seen_by="flight",
        )  # fmt: skip


RULE = Rule(
    "loss-scale-collapsed",
    "numerics",
    decide,
    explains=frozenset(("optimizer-never-steps", "no-better-than-constant")),
    gathers=True,
)
