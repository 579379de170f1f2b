"""missing-values: the data has gaps: NaN, infinity, a code such as -999 in place of a number, or empty texts.

What it sees
    NaN or infinity in a column of the input; one exact value that comes again and again, far outside of everything else
    in its column; texts with nothing in them.

Why it matters
    One NaN makes the loss of its batch NaN, and with the next update every weight. A code that stands for "unknown" is
    taken at its face value: it outweighs all real values of its column.

Evidence
    The column, how many values are missing, the code and the range of the real values, and the samples.

Fix
    Fill the gaps where the data is loaded (with the column's median, and a second column that says which were filled),
    or drop these samples.

When it is wrong
    Masks of minus infinity are left alone, and so are targets, also those of a second task, where NaN or a code can
    mean "no label". A model that handles gaps itself gets this as information; when the loss becomes NaN through them,
    nonfinite-input says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from unstuck.model import Case, Finding, Fix, Severity
from unstuck.recorder.records.data import ColumnStats, PartSeen, TextsSeen
from unstuck.rules.data.seen import Data, called, listed, seen
from unstuck.rules.rule import Rule
from unstuck.rules.training import number

REPEATED = 3
FAR = 2.0
"""A code lies so many times the width of the rest away from it."""
DIFFERENT = 12
"""Distinct values the rest must have: of a column of few values none is out of the way."""
CODES = tuple(sign * 10.0**power for power in range(3, 37) for sign in (1, -1))


def decide(case: Case) -> Iterable[Finding]:
    for data in seen(case):
        gaps = [gap for part in data.features() for gap in _gaps(part)]
        empty = [texts for texts in data.loader.texts if texts.empty]
        if gaps or empty:
            yield _finding(data, gaps, empty)


@dataclass(frozen=True)
class Code:
    """A value that stands for "unknown", and the range of the real ones."""

    value: float
    count: int
    samples: list[int]
    low: float
    high: float


@dataclass(frozen=True)
class Gap:
    """One column with missing values."""

    name: str
    what: str
    count: int
    samples: list[int]
    rows: int
    code: Code | None = None
    """None: they are NaN or infinity."""


def _gaps(part: PartSeen) -> Iterable[Gap]:
    for column in part.columns:
        bad, name = column.nan + column.plus + column.minus, called(part, column.column)
        if bad and column.nan < column.rows:  # else it is no gap: constant-feature
            only = [word for word, count in (("NaN", column.nan), ("infinity", bad - column.nan)) if count]
            yield Gap(name, " and ".join(only), bad, part.bad_samples, column.rows)
        code = code_in(part, column)
        if code is not None:
            yield Gap(name, number(code.value), code.count, code.samples, column.rows, code)


def code_in(part: PartSeen, column: ColumnStats) -> Code | None:
    """A value repeated at one end of a column, far outside of what lies between both ends."""
    numbers, spread = column.numbers, column.spread
    if part.role != "features" or numbers is None or spread is None or spread.inner_distinct < DIFFERENT:
        return None
    low = numbers.min, numbers.at_min, numbers.lowest, spread.inner_low - numbers.min
    high = numbers.max, numbers.at_max, numbers.highest, numbers.max - spread.inner_high
    width = spread.inner_high - spread.inner_low
    for value, count, extremes, gap in (low, high):
        if count >= REPEATED and gap > FAR * width and (is_code(value) or gap > 10 * width):
            samples = [sample for each, sample in extremes if each == value and sample >= 0]
            return Code(value, count, samples, spread.inner_low, spread.inner_high)
    return None


def coded(part: PartSeen) -> set[int]:
    """Columns with such a value: what they look like otherwise is not known."""
    return {column.column for column in part.columns if code_in(part, column) is not None}


def is_code(value: float) -> bool:
    """-999, 9999, 99999, 1e9, 65535 …: what people write for "unknown"."""
    near = any(abs(value - code) <= 1e-6 * abs(code) or abs(value - code) == 1 for code in CODES)
    return near or abs(value) in (99.0, 99.9, 99.99, 999.9, 32767.0, 32768.0, 65535.0, 2147483647.0, 2147483648.0)


def _severity(data: Data, gaps: list[Gap]) -> Severity:
    coded = any(gap.code is not None for gap in gaps)
    return "warning" if coded and data.constant and not data.learned else "info"


def _finding(data: Data, gaps: list[Gap], empty: list[TextsSeen]) -> Finding:
    if gaps:
        worst = max(gaps, key=lambda gap: gap.count)
        samples = worst.samples
        what = worst.what if worst.code is None else f"{worst.what} in place of numbers"
        more = f", and {len(gaps) - 1} more columns do" if len(gaps) > 1 else ""
        title = f"The data has gaps: {worst.name} holds {what}{more}"
    else:
        samples = empty[0].samples
        title = f"The data has gaps: `batch{empty[0].path}` holds empty texts"
    return RULE.finding(
        severity=_severity(data, gaps),
        confidence=0.95 if any(gap.code is None for gap in gaps) else 0.75,
        title=title,
        evidence=tuple(_evidence(data, gaps, empty)),
        where=data.where(sample=samples[0] if samples else None),
        fix=Fix(
            "Fill these values where the data is loaded, with the median of their column, and say in a column of its "
            "own which were filled; or drop these samples."
        ),
        seen_by="flight",
        also=data.also(),
    )


def _evidence(data: Data, gaps: list[Gap], empty: list[TextsSeen]) -> Iterable[str]:
    for gap in sorted(gaps, key=lambda gap: -gap.count)[:4]:
        line = f"{gap.name}: {gap.what} {gap.count:,} times in {gap.rows:,} values"
        if gap.code is not None:
            line += f"; all others lie between {number(gap.code.low)} and {number(gap.code.high)}"
        yield line
    samples = list(dict.fromkeys(sample for gap in gaps for sample in gap.samples))
    if samples:
        whole = max((part.bad_rows for part in data.features()), default=0)
        yield f"samples {listed(samples, max(len(samples), whole) if whole else None)}"
    for texts in empty[:2]:
        which = f" (samples {listed(texts.samples)})" if texts.samples else ""
        yield f"`batch{texts.path}`: {texts.empty:,} of {texts.lines:,} texts are empty{which}"
    yield f"{data.read()} were looked at"


RULE = Rule(
    "missing-values",
    "data",
    decide,
    explains=frozenset(("saturated-units", "dead-units", "vanishing-gradient", "no-better-than-constant")),
    gathers=True,
)
