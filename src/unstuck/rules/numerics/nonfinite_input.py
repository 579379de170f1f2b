"""nonfinite-input: the data that was given to the model holds NaN or infinity.

What it sees
    The loss became NaN or infinite, and a tensor that no operation of the model made (the batch, or its target) holds
    such values already.

Why training stops
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
from typing import Any

from unstuck.model import Case, Finding, Fix
from unstuck.rules.learning.measured import Learning, learnings
from unstuck.rules.numerics.broken import Origin, listed, origins
from unstuck.rules.rule import Rule

ROLES = {"target": "the target", "mat1": "the input", "input": "the input", "self": "the input"}


def decide(case: Case) -> Iterable[Finding]:
    for learning in learnings(case):
        for origin in origins(learning, case):
            if origin.kind == "input":
                yield _finding(learning, origin)


def _finding(learning: Learning, origin: Origin) -> Finding:
    about = origin.about
    name = f"`{about['name']}`" if about.get("name") else ROLES.get(about.get("role", ""), "a tensor of the batch")
    what = "NaN" if about["nan"] and not about["inf"] else "infinity" if not about["nan"] else "NaN and infinity"
    samples = about.get("samples") or []
    whole = about.get("whole")
    column = f", {_columns(about)}" if about.get("columns") else ""
    which = ("sample", samples) if samples else ("row", about["rows"])
    culprit = (
        "every row"
        if about["bad_rows"] == about["shape"][0] > 1
        else f"{which[0]} {listed(which[1], about['bad_rows'])}"
    )
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity=origin.severity,
        confidence=0.97 if "role" in about else 0.85,
        title=f"The data holds {what}: {name}, {culprit}{column}",
        evidence=tuple(_evidence(origin, name, samples, whole)),
        where=learning.where(_made(whole) or origin.site, step=origin.step, sample=samples[0] if samples else None),
        fix=Fix(_fix(about, whole)),
        seen_by="flight",
        also=(learning.where(origin.site, step=origin.step),) if _made(whole) else (),
    )


def _columns(about: dict[str, Any]) -> str:
    count = about.get("bad_columns") or len(about["columns"])
    if count == about["shape"][1] > 1:
        return "every column"
    return f"column{'s' * (count > 1)} {listed(about['columns'], count)}"


def _evidence(origin: Origin, name: str, samples: list[int], whole: dict[str, Any] | None) -> Iterable[str]:
    about = origin.about
    columns = f", in {_columns(about)}" if about.get("columns") else ""
    yield (
        f"{name} of shape {about['shape']} at step {origin.step:,}: {about['nan']:,} NaN and {about['inf']:,} infinite "
        f"of {about['of']:,} values, in row {listed(about['rows'], about['bad_rows'])}{columns}"
    )
    if samples and about["bad_rows"] < about["shape"][0]:
        yield f"these rows are the samples {listed(samples, about['bad_rows'])} of the data set"
    if whole is not None:
        yield (
            f"`{whole['name']}` in {whole['function']}, of shape {whole['shape']}, has {whole['count']:,} such values, "
            f"in row {listed(whole['rows'], whole['bad_rows'])}"
        )
    yield origin.toll()


def _fix(about: dict[str, Any], whole: dict[str, Any] | None) -> str:
    if about.get("whole_columns") and about["shape"][0] > 1:
        return (
            f"Column {listed(about['whole_columns'])} is no number in every row: most likely a constant column was "
            "divided by its standard deviation of 0. Drop it, or add a small number to the divisor."
        )
    source = f" of `{whole['name']}`" if whole is not None else ""
    return (
        f"Drop or fill these rows{source} where the data is loaded, before the first batch: "
        "`keep = torch.isfinite(x).flatten(1).all(1)`."
    )


def _made(whole: dict[str, Any] | None) -> tuple[str, int, str] | None:
    site = (whole or {}).get("assigned")
    return (site[0], site[1], site[2]) if site else None


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
