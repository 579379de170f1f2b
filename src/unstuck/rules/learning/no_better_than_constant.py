"""no-better-than-constant: the model does no better than a constant prediction, and no cause was found.

What it sees
    At the end of the run, or after many steps, the loss is still that of the best constant prediction: the entropy of
    the class frequencies, or the variance of the targets. No other rule of this family has a finding.

Why it matters
    The model has learned how frequent each answer is and nothing from its inputs. Either the inputs say nothing about
    the targets (labels mixed up, or shuffled separately from the samples), or what they say does not get through.

Evidence
    The loss compared with that of the best constant prediction, computed from the targets of the batches read; what was
    checked and is fine.

Fix
    Overfit one batch: if that works, model and loop are fine, and the pairing of inputs and targets is to be checked.

When it is wrong
    Targets that cannot be predicted from these inputs; the first steps of a hard task. It is information only.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median_high

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning, LossHead
from unstuck.rules.rule import Rule
from unstuck.rules.training import SQUARED_OPS, end_mean, optimized, start_mean, stuck_at_constant, update_ratios, where


def decide(case: Case) -> Iterable[Finding]:
    for learning, head, loss, best in stuck_at_constant(case):
        what = "the mean of the targets" if head.op in SQUARED_OPS else "the class frequencies"
        yield RULE.finding(
            severity="info",
            confidence=0.6,
            title=f"After {loss.count:,} steps the model does no better than always predicting {what}; the cause is "
            "not established",
            evidence=(
                f"the loss is {end_mean(loss):.4g} (it began at {start_mean(loss):.4g}); always predicting {what} "
                f"gives {best:.4g}, computed from {head.target.count:,} targets",
                f"checked and fine: {'; '.join(_checked(learning, head))}",
            ),
            where=where(learning, head.site),
            fix="Train on one batch only until its loss is near 0. If that works, check that inputs and targets still "
            "belong together (print some pairs as they come out of the loader).",
        )


def _checked(learning: Learning, head: LossHead) -> Iterable[str]:
    yield "shapes of prediction and target agree"
    yield f"no activation is applied twice before the loss ({head.op})"
    seen = [parameter for parameter in optimized(learning) if parameter.seen]
    if seen:
        reached = sum(1 for parameter in seen if parameter.none + parameter.zero < parameter.seen)
        yield f"{reached} of {len(seen)} parameters get gradients"
    ratios = [ratio for parameter in seen if len(parameter.shape) > 1 for ratio in update_ratios(parameter)]
    if ratios:
        yield f"a step changes weights by {median_high(ratios):.1e} of their size (median)"
    if learning.optimizers and learning.optimizers[0].lrs:
        rates = [rate for _, rate in learning.optimizers[0].lrs]
        yield f"learning rate {min(rates):.3g}" + (f" to {max(rates):.3g}" if max(rates) > min(rates) else "")


RULE = Rule("no-better-than-constant", "learning", decide, last_resort=True, gathers=True)
