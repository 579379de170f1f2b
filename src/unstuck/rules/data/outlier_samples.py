"""outlier-samples: a few samples have values far away from all others.

What it sees
    A column in which a few values lie far outside (a robust z-score, by median and median distance), and far beyond the
    next ones too; or an image or sequence whose brightness or contrast does.

Why training stops
    Such a value gives a loss and a gradient many times larger than usual: the step it takes undoes hundreds of others,
    or blows the training up. Most often it is an error: a wrong unit, a lost decimal point, a broken file.

Evidence
    The value, the sample it came from, the range of the others, and how many times further out it is.

Fix
    Look at these samples; correct or drop them, or clip the column at a high quantile.

When it is wrong
    Heavy tails (incomes, counts, sizes) have far values too: where the next ones follow in steps, or the column is
    broad by nature, nothing is said. It is information only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from unstuck.model import Case, Finding, Fix
from unstuck.rules.data.missing_values import _code
from unstuck.rules.data.seen import Data, called, listed, number, seen
from unstuck.rules.rule import Rule

ROWS = 100
SCORE = 20.0
APART = 8.0
"""Times further from the median than the next value."""
BROAD = 7.0
"""From the median to the last hundredth, in units of the way to the upper quarter: 3.4 for a bell, 5.6 for Laplace."""
FEW = 0.01
DISTINCT = 12


def decide(case: Case) -> Iterable[Finding]:
    for data in seen(case):
        found = [
            far
            for part in data.features()
            for column in (part["columns"] if part["role"] == "features" else part.get("each") or ())
            if (far := _far(part, column)) is not None
        ]
        if found:
            yield _finding(data, found)


Far = tuple[dict[str, Any], dict[str, Any], list[list[float]], float, float]


def _far(part: dict[str, Any], column: dict[str, Any]) -> Far | None:
    """The part, its column, the far values with their samples, their score, and the value next to them."""
    if column["rows"] < ROWS or column.get("distinct", 0) < DISTINCT or not column.get("mad"):
        return None
    if part["role"] == "features" and _code(part, column) is not None:
        return None
    middle, unit = column["q50"], 1.4826 * column["mad"]
    for end, quarter, last in (("highest", "q75", "q99"), ("lowest", "q25", "q01")):
        values = column[end]
        for count in range(1, len(values)):
            outer, following = values[count - 1][0], values[count][0]
            score = abs(outer - middle) / unit
            if score < SCORE or count > max(1, FEW * column["rows"]):
                break
            rest = max(abs(following - middle), abs(column[last] - middle) if count < FEW * column["rows"] else 0, unit)
            broad = abs(column[last] - middle) > BROAD * max(abs(column[quarter] - middle), unit * 0.3)
            if abs(outer - middle) > APART * rest and not broad:
                return part, column, values[:count], abs(values[0][0] - middle) / unit, following
    return None


def _finding(data: Data, found: list[Far]) -> Finding:
    part, column, values, _, _ = max(found, key=lambda far: far[3])
    samples = list(dict.fromkeys(int(sample) for far in found for _, sample in far[2] if sample >= 0))
    which = f"sample {listed(samples)}" if samples else "a few samples"
    of = f"the {column['of']} of {called(part)}" if "of" in column else called(part, column["column"])
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="info",
        confidence=0.8,
        title=f"{which[:1].upper()}{which[1:]}: {of} is {number(values[0][0])}, far away from all others",
        evidence=(*(_line(far) for far in found[:4]), f"{data.read()} were looked at"),
        where=data.where(sample=int(values[0][1]) if values[0][1] >= 0 else None),
        fix=Fix("Look at these samples; correct or drop them, or clip the column where the others end."),
        seen_by="flight",
        also=data.also(),
    )


def _line(far: Far) -> str:
    part, column, values, score, following = far
    of = f"{column['of']} of {called(part)}" if "of" in column else called(part, column["column"])
    shown = listed([f"{number(value)} (sample {int(s)})" if s >= 0 else number(value) for value, s in values])
    return (
        f"{of}: {shown}, {score:,.0f} deviations from the median {number(column['q50'])}; the next value is "
        f"{number(following)}"
    )


RULE = Rule("outlier-samples", "data", decide, gathers=True)
