"""all-labels-ignored: every label of a batch is the one that the loss ignores.

What it sees
    The cross entropy of a batch whose labels are all `ignore_index` (-100 unless it is set): a mean over no label at
    all, which is NaN; or a sum, which is 0 with a gradient of 0.

Why it matters
    Nothing is learned from such a batch, and its NaN goes into every mean, scheduler and early stopping that uses the
    loss. Where the loss is weighted or combined with others, the NaN reaches the parameters too.

Evidence
    The number of labels, the ignored value, the step, and how many losses are NaN.

Fix
    Skip such batches (`if (y != -100).any()`), or find out why all labels are masked: truncation that cuts the answer
    off, a padding value that is also a real class, an inverted mask.

When it is wrong
    A batch without labels now and then does no harm where the script does not use its loss.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning, LossHead
from unstuck.recorder.records.numerics import Operation
from unstuck.rules.numerics.nan_causes import Cause, nan_causes, reason
from unstuck.rules.rule import Rule
from unstuck.rules.training import where

MIN_BATCHES = 10  # all without a label: a single one means nothing
FIX = (
    "Skip batches without a label, and look at what sets every label to the ignored value: truncation, padding, or an "
    "inverted mask."
)


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for cause in nan_causes(learning, case):
            if isinstance(cause.part, Operation) and cause.part.why == "labels-ignored":
                yield _nan(learning, cause, cause.part)
        if not learning.births:
            for head in learning.heads:
                no_label = head.target.count == 0 and head.target.batches >= MIN_BATCHES
                if no_label and head.op in ("cross_entropy", "nll"):
                    yield _zero(learning, head)


def _nan(learning: Learning, cause: Cause, loss_function: Operation) -> Finding:
    step, batch = cause.birth.step, cause.birth.batch
    samples = (batch[0].indices if batch else None) or []
    why = reason(loss_function)
    return RULE.finding(
        severity=cause.severity,
        confidence=0.97,
        title=f"A batch has no label that counts: {why}",
        evidence=(
            f"{loss_function.example} labels in the batch at step {step:,}: {why}, so the loss is a mean over nothing",
            f"its samples: {', '.join(map(str, samples[:8]))}" if samples else "",
            cause.toll(),
        ),
        where=where(learning, cause.site, step=step),
        fix=FIX,
    )


def _zero(learning: Learning, head: LossHead) -> Finding:
    """A sum over no label is 0, and so is its gradient."""
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"None of the {head.target.batches:,} batches read has a label that counts",
        evidence=(
            f"every label of shape {head.target.shape} was ignore_index in each of them",
            "the loss is a sum over nothing: 0, with a gradient of 0",
        ),
        where=where(learning, head.site),
        fix=FIX,
    )


RULE = Rule(
    "all-labels-ignored",
    "numerics",
    decide,
    explains=frozenset(
        ("nonfinite-born", "exploding-gradient", "loss-scale-collapsed", "learning-rate-too-high", "dead-units")
    ),
    gathers=True,
)
