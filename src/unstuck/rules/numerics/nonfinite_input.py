"""nonfinite-input: the data that the model gets contains NaN or Inf.

What it sees
    The loss became NaN or Inf, and a tensor that no operation of the model made (the batch, or its target) already
    contains such values.

Why it matters
    One such value makes the loss of its whole batch NaN, then the gradient of every parameter, and after the next
    update the parameters themselves: from then on every loss is NaN.

Evidence
    The tensor by its name, how many of its values are bad, their rows and columns, the samples of the dataset they
    come from, and the step.

Fix
    Drop or fill these values where the data is loaded (`nan_to_num`, a mean, a mask), and check with
    `torch.isfinite(x).all()` there.

When it is wrong
    Masks of -inf, and NaN that stands for "no label", are reported only if the loss becomes NaN through them. A hidden
    state kept from an earlier step looks like data: if that is NaN, look at the step before. Where the script itself
    makes NaN out of finite data (a logarithm of negative values in `forward` or `__getitem__`), nonfinite-born says so;
    before the training began, or in a worker, that is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.numerics import BadTensor
from unstuck.rules.numerics.nan_causes import BadData, Cause, listed, nan_causes
from unstuck.rules.rule import Rule
from unstuck.rules.training import where

ROLES = {"target": "the target", "mat1": "the input", "input": "the input", "self": "the input"}


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for cause in nan_causes(learning, case):
            sought = cause.birth.sought and case.outcome == "running"
            if isinstance(cause.part, BadData) and not sought:
                yield _finding(learning, cause, cause.part)


def _finding(learning: Learning, cause: Cause, data: BadData) -> Finding:
    tensor, samples, whole, step = data.tensor, data.samples, data.whole, cause.birth.step
    name = f"`{data.name}`" if data.name else ROLES.get(tensor.role, "a tensor of the batch")
    columns = f", in {_columns(tensor)}" if tensor.columns else ""
    assigned = whole.assigned if whole is not None else None
    return RULE.finding(
        severity=cause.severity,
        confidence=0.97 if tensor.role else 0.85,  # the graph itself has it as an input
        title=f"The data contains {_what(tensor)}: {name}, {_culprit(data)}",
        evidence=(
            f"{name} of shape {tensor.shape} at step {step:,}: {tensor.nan:,} NaN and {tensor.inf:,} Inf of "
            f"{tensor.of:,} values, in row {listed(tensor.rows, tensor.bad_rows)}{columns}",
            f"these rows are the samples {listed(samples, tensor.bad_rows)} of the dataset"
            if samples and tensor.bad_rows < tensor.shape[0]
            else "",
            f"`{whole.name}` in {whole.function}, of shape {whole.shape}, has {whole.count:,} such values, in row "
            f"{listed(whole.rows, whole.bad_rows)}"
            if whole is not None
            else "",
            cause.toll(),
        ),
        where=where(learning, assigned or cause.site, step=step, sample=samples[0] if samples else None),
        fix=_fix(tensor, whole),
        also=(where(learning, cause.site, step=step),) if assigned else (),
    )


def _what(tensor: BadTensor) -> str:
    if tensor.nan and tensor.inf:
        return "NaN and Inf"
    return "NaN" if tensor.nan else "Inf"


def _culprit(data: BadData) -> str:
    """sample 428, column 1"""
    tensor = data.tensor
    column = f", {_columns(tensor)}" if tensor.columns else ""
    if tensor.bad_rows == tensor.shape[0] > 1:
        return f"every row{column}"
    word, numbers = ("sample", data.samples) if data.samples else ("row", tensor.rows)
    return f"{word} {listed(numbers, tensor.bad_rows)}{column}"


def _columns(tensor: BadTensor) -> str:
    count = tensor.bad_columns or len(tensor.columns)
    if count == tensor.shape[1] > 1:
        return "every column"
    return f"column{'s' * (count > 1)} {listed(tensor.columns, count)}"


def _fix(tensor: BadTensor, whole: BadTensor | None) -> str:
    if tensor.whole_columns and tensor.shape[0] > 1:
        return (
            f"Column {listed(tensor.whole_columns)} is NaN in every row: most likely a constant column was divided by "
            "its standard deviation of 0. Drop it, or add an epsilon to the divisor."
        )
    source = f" of `{whole.name}`" if whole is not None else ""
    return (
        f"Drop or fill these rows{source} where the data is loaded, before the first batch: "
        "`keep = torch.isfinite(x).flatten(1).all(1)`."
    )


RULE = Rule(
    "nonfinite-input",
    "numerics",
    decide,
    explains=frozenset(
        (
            "nonfinite-born",
            "exploding-gradient",
            "loss-scale-collapsed",
            "learning-rate-too-high",
            "dead-units",
            "missing-values",
            "constant-feature",
            "uncaught-exception",
        )
    ),
    gathers=True,
)
