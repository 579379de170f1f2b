"""constant-feature: a column of the input is the same for every sample.

What it sees
    A column whose lowest and highest value are the same, over all samples read; or one that is NaN in every sample.

Why it matters
    The column says nothing, and often hides a mistake in how it is read. Standardizing it divides by a deviation of 0:
    from then on it is NaN, and so is the loss.

Evidence
    The column, its value, and how many samples were read.

Fix
    Drop the column; or, if it should vary, look at how it is read (a wrong name, a failed join, a lost type).

When it is wrong
    A column of ones may stand for the bias. During a training only some batches are read and may lack a rare value, so
    columns of nothing but 0 or 1 are left to `unstuck scan`. It is information only.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.data import ColumnStats, PartSeen
from unstuck.rules.data.contents import Data, listed, number, part_name, read_data
from unstuck.rules.rule import Rule

MIN_ROWS = 64
MAX_SHARE = 0.2  # of the columns: more are the border of a picture, or padding


def decide(case: Case) -> Iterable[Finding]:
    for data in read_data(case):
        for part in data.features():
            same = [column for column in part.columns if _constant(column, data)]
            if part.role == "features" and 0 < len(same) <= max(1, MAX_SHARE * part.width) and part.width > 1:
                yield _finding(data, part, same)


def _constant(column: ColumnStats, data: Data) -> bool:
    if column.rows < MIN_ROWS:
        return False
    if column.nan == column.rows:
        return True
    numbers = column.numbers
    if numbers is None or column.count < column.rows or numbers.min != numbers.max:
        return False
    return data.scanned or numbers.min not in (0.0, 1.0)


def _finding(data: Data, part: PartSeen, same: list[ColumnStats]) -> Finding:
    names = [column.column for column in same]
    nan = [column.column for column in same if not column.count]
    values = [(column.column, number(column.numbers.min)) for column in same[:3] if column.numbers is not None]
    others = f", and {len(same) - 1} more columns are constant too" if len(same) > 1 else ""
    return RULE.finding(
        severity="info",
        confidence=0.95 if data.scanned else 0.8,
        title=f"{part_name(part, names[0])} is {'NaN' if nan else values[0][1]} in every sample{others}",
        evidence=(
            f"{part_name(part)}: column {listed(names)} of {part.width:,} never changes in {data.extent()}",
            *(f"column {column} is always {value}" for column, value in values),
            f"column {listed(nan)} is always NaN: as if divided by a deviation of 0" if nan else "",
        ),
        where=data.where(),
        fix="Add a small number to the divisor where columns are standardized, or drop this one."
        if nan
        else "Drop the column, or look at how it is read if it should vary.",
        also=data.also(),
    )


RULE = Rule("constant-feature", "data", decide, gathers=True)
