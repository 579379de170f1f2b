"""missing-values: the data has gaps: NaN, infinity, a code such as -999 in place of a number, or empty texts.

What it sees
    NaN or infinity in a column of the input; one exact value that comes again and again, far outside of everything else
    in its column; texts with nothing in them.

Why training stops
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
from typing import Any

from unstuck.model import Case, Finding, Fix, Severity
from unstuck.rules.data.seen import Data, called, listed, number, seen
from unstuck.rules.rule import Rule

REPEATED = 3
FAR = 2.0
"""A code lies so many times the width of the rest away from it."""
DIFFERENT = 12
"""Distinct values the rest must have: of a column of few values none is out of the way."""
CODES = tuple(sign * 10.0**power for power in range(3, 37) for sign in (1, -1))


def decide(case: Case) -> Iterable[Finding]:
    for data in seen(case):
        gaps = [gap for part in data.features() for gap in _gaps(part)]
        empty = [about for about in data.about.get("texts") or () if about[1]]
        if gaps or empty:
            yield _finding(data, gaps, empty)


class Gap:
    """One column with missing values."""

    def __init__(self, part: dict[str, Any], column: dict[str, Any], what: str, count: int, samples: list[int]) -> None:
        self.part, self.column, self.what, self.count, self.samples = part, column, what, count, samples
        self.name = called(part, column["column"])


def _gaps(part: dict[str, Any]) -> Iterable[Gap]:
    for column in part["columns"]:
        bad = column["nan"] + column["plus"] + column["minus"]
        if bad and column["nan"] < column["rows"]:  # else it is no gap: constant-feature
            only = [word for word, count in (("NaN", column["nan"]), ("infinity", bad - column["nan"])) if count]
            yield Gap(part, column, " and ".join(only), bad, part.get("bad_samples") or [])
        code = _code(part, column)
        if code is not None:
            yield Gap(part, column, number(code[0]), code[1], code[2])


def _code(part: dict[str, Any], column: dict[str, Any]) -> tuple[float, int, list[int]] | None:
    """A value repeated at one end of a column, far outside of what lies between both ends."""
    if part["role"] != "features" or column.get("inner_distinct", 0) < DIFFERENT:
        return None
    width = column["inner_high"] - column["inner_low"]
    ends = (
        ("min", "lowest", column["inner_low"] - column["min"]),
        ("max", "highest", column["max"] - column["inner_high"]),
    )
    for end, extremes, gap in ends:
        value, count = column[end], column[f"at_{end}"]
        if count >= REPEATED and gap > FAR * width and (is_code(value) or gap > 10 * width):
            samples = [int(sample) for each, sample in column[extremes] if each == value and sample >= 0]
            return value, count, samples
    return None


def coded(part: dict[str, Any]) -> set[int]:
    """Columns with such a value: what they look like otherwise is not known."""
    return {column["column"] for column in part["columns"] if _code(part, column) is not None}


def is_code(value: float) -> bool:
    """-999, 9999, 99999, 1e9, 65535 …: what people write for "unknown"."""
    near = any(abs(value - code) <= 1e-6 * abs(code) or abs(value - code) == 1 for code in CODES)
    return near or abs(value) in (99.0, 99.9, 99.99, 999.9, 32767.0, 32768.0, 65535.0, 2147483647.0, 2147483648.0)


def _severity(data: Data, gaps: list[Gap]) -> Severity:
    coded = any(gap.what not in ("NaN", "infinity", "NaN and infinity") for gap in gaps)
    return "warning" if coded and data.constant and not data.learned else "info"


def _finding(data: Data, gaps: list[Gap], empty: list[list[Any]]) -> Finding:
    samples = gaps[0].samples if gaps else empty[0][3]
    if gaps:
        worst = max(gaps, key=lambda gap: gap.count)
        samples = worst.samples
        what = f"{worst.what} in place of numbers" if worst.what[-1].isdigit() else worst.what
        title = f"The data has gaps: {worst.name} holds {what}" + (
            f", and {len(gaps) - 1} more columns do" if len(gaps) > 1 else ""
        )
    else:
        title = f"The data has gaps: `batch{empty[0][0]}` holds empty texts"
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity=_severity(data, gaps),
        confidence=0.95 if any("NaN" in gap.what or "inf" in gap.what for gap in gaps) else 0.75,
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


def _evidence(data: Data, gaps: list[Gap], empty: list[list[Any]]) -> Iterable[str]:
    for gap in sorted(gaps, key=lambda gap: -gap.count)[:4]:
        column = gap.column
        line = f"{gap.name}: {gap.what} {gap.count:,} times in {column['rows']:,} values"
        if gap.what[-1].isdigit():
            line += f"; all others lie between {number(column['inner_low'])} and {number(column['inner_high'])}"
        yield line
    samples = list(dict.fromkeys(sample for gap in gaps for sample in gap.samples))
    if samples:
        whole = max((part.get("bad_rows", 0) for part in data.features()), default=0)
        yield f"samples {listed(samples, max(len(samples), whole) if whole else None)}"
    for path, lines, none, which in empty[:2]:
        yield f"`batch{path}`: {none:,} of {lines:,} texts are empty" + (f" (samples {listed(which)})" if which else "")
    yield f"{data.read()} were looked at"


RULE = Rule(
    "missing-values",
    "data",
    decide,
    explains=frozenset(("saturated-units", "dead-units", "vanishing-gradient", "no-better-than-constant")),
    gathers=True,
)
