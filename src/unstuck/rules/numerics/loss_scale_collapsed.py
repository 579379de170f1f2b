"""loss-scale-collapsed: the GradScaler halves its scale again and again, because no gradient is ever finite.

What it sees
    `GradScaler` found NaN or Inf gradients in step after step: its scale fell below 1, or it skipped twelve steps in a
    row or more.

Why it matters
    A step with non-finite gradients is skipped. Where every step is, nothing is learned at all; and no scale helps if
    the gradient overflows without any.

Evidence
    The scale at the start and now, the number of updates, and how many steps in a row were skipped.

Fix
    Find what overflows in float16: a loss summed over the batch, targets of the order of 10,000, a square root at 0.
    Compute that part in float32, or use bfloat16, which needs no scaler.

When it is wrong
    A handful of skipped steps at the start is how the scaler finds its scale, and is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.numerics.nan_causes import has_collapsed
from unstuck.rules.rule import Rule
from unstuck.rules.training import loss_site, main_loss, where


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        scaler, loss = learning.scaler, main_loss(learning)
        if scaler is None or not has_collapsed(scaler):
            continue
        skipped = scaler.skipped_in_row
        state = ""
        if loss is not None and loss.nonfinite:
            state = f"{loss.nonfinite:,} losses are NaN or Inf"
        elif loss is not None and loss.count:
            state = f"the loss itself is finite, last {loss.last:.4g}: it is the gradient that overflows"
        yield RULE.finding(
            severity="error",
            confidence=0.93,
            title=f"The loss scale fell from {scaler.first:,.6g} to {scaler.scale:.3g}: gradients overflow",
            evidence=(
                f"scale {scaler.first:,.6g} at the start, {scaler.scale:.3g} after {scaler.updates:,} updates",
                f"the last {skipped:,} steps in a row were skipped because of NaN or Inf gradients" if skipped else "",
                state,
            ),
            where=where(learning, loss_site(learning)),
            fix=Fix(
                "Compute the loss in float32 and as a mean, with targets of the order of 1; or use bfloat16, which "
                "needs no scaler.",
                setting="precision",
            ),
        )


RULE = Rule(
    "loss-scale-collapsed",
    "numerics",
    decide,
    explains=frozenset(("optimizer-never-steps",)),
    gathers=True,
)
