"""all-labels-ignored: every label of a batch is the one that the loss was told to ignore.

What it sees
    The cross entropy of a batch whose labels are all `ignore_index` (-100 unless it was set): the mean over no label
    at all, which is NaN; or a sum, which is 0 with a gradient of 0.

Why it matters
    Nothing is learned from such a batch, and its NaN goes into every mean, scheduler and early stopping that the loss
    feeds. Where the loss is weighted or combined with others, the NaN reaches the parameters too.

Evidence
    The number of labels, the value that is ignored, the step, and how many losses were no number.

Fix
    Leave such batches out (`if (y != -100).any()`), or find out why all labels were masked: truncation that cuts the
    answer off, a padding value that is used for real classes, a mask that is inverted.

When it is wrong
    A batch without a label now and then is harmless where the script does not use its loss.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.numerics import Operation
from unstuck.rules.learning.measured import where
from unstuck.rules.numerics.broken import Origin, origins
from unstuck.rules.numerics.reasons import reason
from unstuck.rules.rule import Rule

BATCHES = 10
"""Read, all without a label: one alone is nothing."""
FIX = (
    "Leave batches without a label out of the loss, and look at what set every label to that value: truncation, "
    "padding, or an inverted mask."
)


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for origin in origins(learning, case):
            if isinstance(origin.part, Operation) and origin.part.why == "labels-ignored":
                yield _finding(learning, origin, origin.part)
        if not learning.births:
            yield from _without_nan(learning)


def _finding(learning: Learning, origin: Origin, loss_function: Operation) -> Finding:
    step, batch = origin.birth.step, origin.birth.batch
    samples = (batch[0].indices if batch else None) or []
    why = reason(loss_function)
    return RULE.finding(
        severity=origin.severity,
        confidence=0.97,
        title=f"A batch has no label that counts: {why}",
        evidence=(
            f"{loss_function.example} labels of the batch at step {step:,}: {why}, so the loss is a mean over nothing",
            *((f"its samples: {', '.join(map(str, samples[:8]))}",) if samples else ()),
            origin.toll(),
        ),
        where=where(learning, origin.site, step=step),
        fix=Fix(FIX),
        seen_by="flight",
    )


def _without_nan(learning: Learning) -> Iterable[Finding]:
    """A sum over no label is 0, and so is its gradient."""
    for head in learning.heads:
        target = head.target
        if head.op in ("cross_entropy", "nll") and target.count == 0 and target.batches >= BATCHES:
            yield RULE.finding(
                severity="error",
                confidence=0.95,
                title=f"All of {target.batches:,} batches read have no label that counts",
                evidence=(
                    f"every label of shape {target.shape} was ignore_index in each of them",
                    "the loss is a sum over nothing: 0, with a gradient of 0",
                ),
                where=where(learning, head.site),
                fix=Fix(FIX),
                seen_by="flight",
            )


RULE = Rule(
    "all-labels-ignored",
    "numerics",
    decide,
    explains=frozenset(
        (
            "nonfinite-born",
            "exploding-gradient",
            "loss-scale-collapsed",
            "learning-rate-too-high",
            "dead-units",
            "no-better-than-constant",
        )
    ),
    gathers=True,
)
