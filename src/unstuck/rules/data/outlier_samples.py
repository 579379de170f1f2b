"""outlier-samples: a few samples have values far away from all others.

What it sees
    A column in which a few values lie far outside (a robust z-score, by median and median distance), and far beyond the
    next ones too; or an image or sequence whose brightness or contrast does.

Why it matters
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
from dataclasses import dataclass

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.data import ColumnStats, PartSeen
from unstuck.rules.data.missing_values import code_in
from unstuck.rules.data.seen import Data, called, listed, seen
from unstuck.rules.rule import Rule
from unstuck.rules.training import number

ROWS = 100
SCORE = 20.0
APART = 8.0
"""Times further from the median than the next value."""
BROAD = 7.0
"""From the median to the last hundredth, in units of the way to the upper quarter: 3.4 for a bell, 5.6 for Laplace."""
FEW = 0.01
DISTINCT = 12


@dataclass(frozen=True)
class Far:
    """Values of a column that lie far away from all others."""

    of: str
    """The column, or what of each sample."""
    article: str
    values: list[tuple[float, int]]
    """Each with its sample."""
    score: float
    middle: float
    following: float
    """The value next to them."""

    @property
    def samples(self) -> list[int]:
        return [sample for _, sample in self.values if sample >= 0]


def decide(case: Case) -> Iterable[Finding]:
    for data in seen(case):
        found = [far for part in data.features() for far in _in_part(part)]
        if found:
            yield _finding(data, found)


def _in_part(part: PartSeen) -> Iterable[Far]:
    if part.role == "features":
        columns = [(called(part, column.column), "", column) for column in part.columns if not code_in(part, column)]
    else:
        each = (("mean", part.means), ("deviation", part.deviations))
        columns = [(f"{of} of {called(part)}", "the ", column) for of, column in each if column is not None]
    for name, article, column in columns:
        far = _far(name, article, column)
        if far is not None:
            yield far


def _far(name: str, article: str, column: ColumnStats) -> Far | None:
    numbers, spread = column.numbers, column.spread
    if column.rows < ROWS or numbers is None or spread is None or spread.distinct < DISTINCT or not spread.mad:
        return None
    middle, unit, few = spread.q50, 1.4826 * spread.mad, FEW * column.rows
    ends = ((numbers.highest, spread.q75, spread.q99), (numbers.lowest, spread.q25, spread.q01))
    for values, quarter, last in ends:
        broad = abs(last - middle) > BROAD * max(abs(quarter - middle), unit * 0.3)
        for count in range(1, len(values)):
            outer, following = values[count - 1][0], values[count][0]
            if abs(outer - middle) / unit < SCORE or count > max(1, few) or broad:
                break
            rest = max(abs(following - middle), abs(last - middle) if count < few else 0, unit)
            if abs(outer - middle) > APART * rest:
                return Far(name, article, values[:count], abs(values[0][0] - middle) / unit, middle, following)
    return None


def _finding(data: Data, found: list[Far]) -> Finding:
    worst = max(found, key=lambda far: far.score)
    samples = list(dict.fromkeys(sample for far in found for sample in far.samples))
    which = f"Sample {listed(samples)}" if samples else "A few samples"
    value, sample = worst.values[0]
    return RULE.finding(
        severity="info",
        confidence=0.8,
        title=f"{which}: {worst.article}{worst.of} is {number(value)}, far away from all others",
        evidence=(*(_line(far) for far in found[:4]), f"{data.read()} were looked at"),
        where=data.where(sample=sample if sample >= 0 else None),
        fix=Fix("Look at these samples; correct or drop them, or clip the column where the others end."),
        seen_by="flight",
        also=data.also(),
    )


def _line(far: Far) -> str:
    shown = listed([f"{number(value)} (sample {s})" if s >= 0 else number(value) for value, s in far.values])
    return (
        f"{far.of}: {shown}, {far.score:,.0f} deviations from the median {number(far.middle)}; the next value is "
        f"{number(far.following)}"
    )


RULE = Rule("outlier-samples", "data", decide, gathers=True)
