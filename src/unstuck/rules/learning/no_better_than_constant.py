"""no-better-than-constant: the model does no better than always giving the same answer, and no cause was found.

What it sees
    At the end of the run, or after many steps, the loss is still that of the best constant prediction: the entropy of
    the class frequencies, or the variance of the targets. No other rule of this family speaks.

Why it matters
    The model has learned how frequent each answer is and nothing from its inputs. Either the inputs say nothing of the
    targets (labels mixed up, shuffled apart from the samples), or what they say does not get through.

Evidence
    The loss beside that of the best constant prediction, computed from the targets of the batches read; what was
    looked at and found in order.

Fix
    Overfit one batch: if that works, the model and the loop are sound, and the pairing of inputs and targets is to be
    looked at.

When it is wrong
    Targets that cannot be predicted from these inputs; the first steps of a hard task. It is information only.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, LossHead
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import owned, update_ratios, where
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    for learning, head, loss, best in curves.stuck(case):
        yield _finding(learning, head, loss, best)


def _finding(learning: Learning, head: LossHead, loss: Loss, best: float) -> Finding:
    numbers = head.op in ("mse", "squared")
    which = "always giving the mean of the targets" if numbers else "always giving the frequencies of the classes"
    return RULE.finding(
        severity="info",
        confidence=0.6,
        title=f"After {loss.count:,} steps the model does no better than {which}; the cause is not established",
        evidence=(
            f"the loss is {curves.ended(loss):.4g} (it began at {curves.began(loss):.4g}); {which} gives {best:.4g}, "
            f"computed from {head.target.count:,} targets",
            f"looked at and in order: {'; '.join(_excluded(learning, head))}",
        ),
        where=where(learning, head.site),
        fix=Fix(
            "Train on one batch only until its loss is near 0. If that works, check that inputs and targets still "
            "belong together (print some pairs as they come out of the loader)."
        ),
        seen_by="flight",
    )


def _excluded(learning: Learning, head: LossHead) -> list[str]:
    """What was measured, with its numbers."""
    said = ["shapes of prediction and target agree", f"nothing is applied twice before the loss ({head.op})"]
    looked_at = [each for each in owned(learning) if each.seen]
    if looked_at:
        fed = sum(1 for each in looked_at if each.none + each.zero < each.seen)
        said.append(f"{fed} of {len(looked_at)} parameters get gradients")
        ratios = sorted(ratio for each in looked_at if len(each.shape) > 1 for ratio in update_ratios(each))
        if ratios:
            said.append(f"a step changes weights by {ratios[len(ratios) // 2]:.1e} of their size at the median")
    if learning.optimizers and learning.optimizers[0].lrs:
        rates = [rate for _, rate in learning.optimizers[0].lrs]
        said.append(f"learning rate {min(rates):.3g}" + (f" to {max(rates):.3g}" if max(rates) > min(rates) else ""))
    return said


RULE = Rule("no-better-than-constant", "learning", decide, last_resort=True, gathers=True)
