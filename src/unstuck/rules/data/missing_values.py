"""missing-values: the data has gaps: NaN, Inf, a code such as -999 in place of a number, or empty texts.

What it sees
    NaN or Inf in a column of the input; one exact value that comes again and again, far outside of everything else in
    its column, also where only a part of each sequence or window has it (there only values that people write for
    "unknown", such as -999); empty texts.

Why it matters
    One NaN makes the loss of its batch NaN, and with the next update every weight. A code that stands for "unknown"
    counts as a number: it outweighs all real values of its column.

Evidence
    The column, how many values are missing, the code and the range of the real values, and the samples.

Fix
    Fill the gaps where the data is loaded (with the column's median, and a second column that says which were filled),
    or drop these samples.

When it is wrong
    Masks of minus infinity are left alone, and so are targets, also those of a second task, where NaN or a code can
    mean "no label". For a model that handles gaps itself this is information, and so are codes in a training that
    learns all the same; when gaps make the loss NaN, nonfinite-input says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from unstuck.model import Case, Finding
from unstuck.recorder.records.data import PartSeen, TextsSeen
from unstuck.rules.data.contents import Code, Data, code_in, listed, number, part_name, read_data
from unstuck.rules.rule import Rule


@dataclass(frozen=True)
class Gap:
    """One column with missing values."""

    name: str
    what: str
    count: int
    samples: list[int]
    rows: int
    code: Code | None = None  # None: they are NaN or Inf


def decide(case: Case) -> Iterable[Finding]:
    for data in read_data(case):
        gaps = sorted((gap for part in data.features() for gap in _gaps(part)), key=lambda gap: -gap.count)
        empty = [texts for texts in data.loader.texts if texts.empty]
        if gaps or empty:
            yield _finding(data, gaps, empty)


def _gaps(part: PartSeen) -> Iterable[Gap]:
    for column in part.columns:
        bad, name = column.nan + column.plus + column.minus, part_name(part, column.column)
        if bad and column.nan < column.rows:  # NaN throughout is constant-feature
            kinds = [word for word, count in (("NaN", column.nan), ("Inf", bad - column.nan)) if count]
            yield Gap(name, " and ".join(kinds), bad, part.bad_samples, column.rows)
        code = code_in(part, column)
        if code is not None:
            yield Gap(name, number(code.value), code.count, code.samples, column.rows, code)


def _finding(data: Data, gaps: list[Gap], empty: list[TextsSeen]) -> Finding:
    if gaps:
        samples = gaps[0].samples
        code = " in place of numbers" if gaps[0].code is not None else ""
        more = f", and {len(gaps) - 1} more columns have gaps too" if len(gaps) > 1 else ""
        what = f"{gaps[0].name} holds {gaps[0].what}{code}{more}"
    else:
        samples = empty[0].samples
        what = f"`batch{empty[0].path}` holds empty texts"
    coded = any(gap.code is not None for gap in gaps)
    return RULE.finding(
        severity="error" if coded and data.useless else "warning" if coded and data.fails else "info",
        confidence=0.95 if any(gap.code is None for gap in gaps) else 0.75,
        title=f"The data has gaps: {what}",
        evidence=_evidence(data, gaps, empty),
        where=data.where(sample=samples[0] if samples else None),
        fix="Fill these values where the data is loaded, with the median of their column, and mark them in a column "
        "of its own; or drop these samples.",
        also=data.also(),
    )


def _evidence(data: Data, gaps: list[Gap], empty: list[TextsSeen]) -> Iterable[str]:
    for gap in gaps[:4]:
        lie = "most others lie" if gap.code is not None and gap.code.about else "all others lie"
        others = f"; {lie} between {number(gap.code.low)} and {number(gap.code.high)}" if gap.code else ""
        yield f"{gap.name}: {gap.what} in {gap.count:,} of {gap.rows:,} values{others}"
    samples = list(dict.fromkeys(sample for gap in gaps for sample in gap.samples))
    if samples:
        bad_rows = max((part.bad_rows for part in data.features()), default=0)
        count = max(len(samples), bad_rows)
        yield f"sample{'s' * (count > 1)} {listed(samples, count)}"
    for texts in empty[:2]:
        which = f" (samples {listed(texts.samples)})" if texts.samples else ""
        yield f"`batch{texts.path}`: {texts.empty:,} of {texts.lines:,} texts are empty{which}"
    if any(gap.code is not None for gap in gaps):
        yield data.harm()
    yield f"{data.extent()} were read"


RULE = Rule(
    "missing-values",
    "data",
    decide,
    explains=frozenset(
        {
            "saturated-units",
            "dead-units",
            "vanishing-gradient",
            "exploding-gradient",
            "learning-rate-too-high",
            "loss-oscillates",
            "loss-spike",
            "outlier-samples",
            "no-better-than-constant",
        }
    ),
    gathers=True,
)
