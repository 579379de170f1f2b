"""outlier-samples: a few samples have values far away from all others.

What it sees
    A column in which a few values lie far outside (a robust z-score, by median and median distance), and far beyond the
    next ones too; or an image or sequence whose brightness or contrast does.

Why it matters
    Such a value gives a loss and a gradient many times larger than usual: its step undoes hundreds of others, or makes
    the training diverge. Most often it is an error: a wrong unit, a lost decimal point, a broken file.

Evidence
    The value, the sample it came from, the range of the others, and how many times further out it is.

Fix
    Look at these samples; correct or drop them, or clip the column at a high quantile.

When it is wrong
    Heavy tails (incomes, counts, sizes) have far values too: if the next ones follow in steps, or the column is broad
    by nature, this rule is silent. It is information only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from unstuck.model import Case, Finding
from unstuck.recorder.records.data import ColumnStats, PartSeen
from unstuck.rules.data.contents import code_in, listed, number, part_name, read_data
from unstuck.rules.rule import Rule

MIN_ROWS = 100
MIN_DISTINCT = 12
MIN_SCORE = 20.0  # deviations from the median
MIN_APART = 8.0  # times further from the median than the next value
MAX_BROAD = 7.0  # from the median to the last hundredth, in units of the way to the quartile: Laplace has 5.6
MAX_SHARE = 0.01  # of the rows


@dataclass(frozen=True)
class Outliers:
    """Values of a column that lie far away from all others."""

    name: str  # of the column, or of what was measured of each sample
    values: list[tuple[float, int]]  # each with its sample
    score: float
    median: float
    following: float  # the value next to them

    @property
    def samples(self) -> list[int]:
        return [sample for _, sample in self.values if sample >= 0]

    def text(self) -> str:
        shown = [number(value) + (f" (sample {sample})" if sample >= 0 else "") for value, sample in self.values]
        return (
            f"{self.name}: {listed(shown)}, {self.score:,.0f} deviations from the median {number(self.median)}; the "
            f"next value is {number(self.following)}"
        )


def decide(case: Case) -> Iterable[Finding]:
    for data in read_data(case):
        columns = [named for part in data.features() for named in _columns(part)]
        outliers = [far for name, column in columns if (far := _outliers(name, column))]
        if not outliers:
            continue
        worst = max(outliers, key=lambda far: far.score)
        samples = list(dict.fromkeys(sample for far in outliers for sample in far.samples))
        value, sample = worst.values[0]
        which = f"Sample{'s' * (len(samples) > 1)} {listed(samples)}" if samples else "A few samples"
        yield RULE.finding(
            severity="info",
            confidence=0.8,
            title=f"{which}: {worst.name} is {number(value)}, far away from all others",
            evidence=(*(far.text() for far in outliers[:4]), f"{data.extent()} were read"),
            where=data.where(sample=sample if sample >= 0 else None),
            fix="Look at these samples; correct or drop them, or clip the column where the others end.",
            also=data.also(),
        )


def _columns(part: PartSeen) -> Iterable[tuple[str, ColumnStats]]:
    if part.role == "features":
        return [(part_name(part, column.column), column) for column in part.columns if not code_in(part, column)]
    measured = (("mean", part.means), ("deviation", part.deviations))
    return [(f"the {of} of {part_name(part)}", column) for of, column in measured if column is not None]


def _outliers(name: str, column: ColumnStats) -> Outliers | None:
    numbers, spread = column.numbers, column.spread
    if column.rows < MIN_ROWS or numbers is None or spread is None or spread.distinct < MIN_DISTINCT or not spread.mad:
        return None
    middle, unit, few = spread.q50, 1.4826 * spread.mad, MAX_SHARE * column.rows
    for values, quartile, last in (
        (numbers.highest, spread.q75, spread.q99),
        (numbers.lowest, spread.q25, spread.q01),
    ):
        if abs(last - middle) > MAX_BROAD * max(abs(quartile - middle), unit * 0.3):
            continue
        for count in range(1, len(values)):
            outer, following = values[count - 1][0], values[count][0]
            if abs(outer - middle) / unit < MIN_SCORE or count > max(1, few):
                break
            rest = max(abs(following - middle), abs(last - middle) if count < few else 0, unit)
            if abs(outer - middle) > MIN_APART * rest:
                return Outliers(name, values[:count], abs(values[0][0] - middle) / unit, middle, following)
    return None


RULE = Rule("outlier-samples", "data", decide, gathers=True)
