"""nonfinite-input: the data that was given to the model holds NaN or infinity.

What it sees
    The loss became NaN or infinite, and a tensor that no operation of the model made (the batch, or its target) holds
    such values already.

Why it matters
    One such value makes the loss of its whole batch NaN, the gradient of every parameter, and with the next update the
    parameters themselves: from then on every loss is NaN.

Evidence
    The tensor by its name, how many of its values are bad, their rows and columns, the samples of the data set they
    come from, and the step.

Fix
    Drop or fill these values where the data is loaded (`nan_to_num`, a mean, a mask), and check with
    `torch.isfinite(x).all()` there.

When it is wrong
    Masks of -inf and NaN that stands for "no label" are not reported unless the loss becomes NaN through them. A
    hidden state kept from an earlier step looks like data: if that is NaN, look at the step before.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.numerics import BadTensor
from unstuck.rules.learning.measured import where
from unstuck.rules.numerics.broken import Given, Origin, listed, origins
from unstuck.rules.rule import Rule

ROLES = {"target": "the target", "mat1": "the input", "input": "the input", "self": "the input"}


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for origin in origins(learning, case):
            if isinstance(origin.part, Given):
                yield _finding(learning, origin, origin.part)


def _finding(learning: Learning, origin: Origin, data: Given) -> Finding:
    tensor, samples, step = data.tensor, data.samples, origin.birth.step
    name = f"`{data.name}`" if data.name else ROLES.get(tensor.role, "a tensor of the batch")
    made = data.whole.assigned if data.whole is not None else None
    return RULE.finding(
        severity=origin.severity,
        confidence=0.97 if tensor.role else 0.85,  # the graph itself was given it
        title=f"The data holds {_what(tensor)}: {name}, {_culprit(data)}",
        evidence=tuple(_evidence(origin, data, name)),
        where=where(learning, made or origin.site, step=step, sample=samples[0] if samples else None),
        fix=Fix(_fix(tensor, data.whole)),
        seen_by="flight",
        also=(where(learning, origin.site, step=step),) if made else (),
    )


def _what(tensor: BadTensor) -> str:
    if tensor.nan and tensor.inf:
        return "NaN and infinity"
    return "NaN" if tensor.nan else "infinity"


def _culprit(data: Given) -> str:
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


def _evidence(origin: Origin, data: Given, name: str) -> Iterable[str]:
    tensor, samples, whole = data.tensor, data.samples, data.whole
    columns = f", in {_columns(tensor)}" if tensor.columns else ""
    yield (
        f"{name} of shape {tensor.shape} at step {origin.birth.step:,}: {tensor.nan:,} NaN and {tensor.inf:,} infinite "
        f"of {tensor.of:,} values, in row {listed(tensor.rows, tensor.bad_rows)}{columns}"
    )
    if samples and tensor.bad_rows < tensor.shape[0]:
        yield f"these rows are the samples {listed(samples, tensor.bad_rows)} of the data set"
    if whole is not None:
        yield (
            f"`{whole.name}` in {whole.function}, of shape {whole.shape}, has {whole.count:,} such values, "
            f"in row {listed(whole.rows, whole.bad_rows)}"
        )
    yield origin.toll()


def _fix(tensor: BadTensor, whole: BadTensor | None) -> str:
    if tensor.whole_columns and tensor.shape[0] > 1:
        return (
            f"Column {listed(tensor.whole_columns)} is no number in every row: most likely a constant column was "
            "divided by its standard deviation of 0. Drop it, or add a small number to the divisor."
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
            "no-better-than-constant",
            "missing-values",
            "constant-feature",
        )
    ),
    gathers=True,
)
