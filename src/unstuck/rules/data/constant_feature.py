"""constant-feature: a column of the input is the same for every sample.

What it sees
    A column whose lowest and highest value are one, over all samples read; or one that is NaN in every sample.

Why it matters
    It does not stop, but the column says nothing. Standardizing it divides by a deviation of 0: from then on it is NaN,
    and with it the loss.

Evidence
    The column, its value, and how many samples were read.

Fix
    Drop the column; or, where it should vary, look at how it is read (a wrong name, a failed join, a type lost).

When it is wrong
    A column that is 1 for all stands for the bias. Of a training only some batches are read: a rare value may not have
    been among them, so columns of nothing but 0 or 1 are left to `unstuck scan`. It is information only.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.data import ColumnStats, PartSeen
from unstuck.rules.data.seen import Data, called, listed, seen
from unstuck.rules.rule import Rule
from unstuck.rules.training import number

ROWS = 64
MANY = 0.2
"""Where more of the columns than this are constant it is the border of a picture, or padding."""


def decide(case: Case) -> Iterable[Finding]:
    for data in seen(case):
        for part in data.features():
            same = [column for column in part.columns if _constant(column, data)]
            if part.role == "features" and 0 < len(same) <= max(1, MANY * part.width) and part.width > 1:
                yield _finding(data, part, same)


def _constant(column: ColumnStats, data: Data) -> bool:
    if column.rows < ROWS:
        return False
    if column.nan == column.rows:
        return True
    numbers = column.numbers
    if numbers is None or column.count < column.rows or numbers.min != numbers.max:
        return False
    return data.scanned or numbers.min not in (0.0, 1.0)


def _finding(data: Data, part: PartSeen, same: list[ColumnStats]) -> Finding:
    places = [column.column for column in same]
    lost = [column.column for column in same if not column.count]
    values = [(column.column, number(column.numbers.min)) for column in same[:3] if column.numbers is not None]
    what = "NaN" if lost else values[0][1]
    others = f", and {len(same) - 1} more columns are constant too" if len(same) > 1 else ""
    return RULE.finding(
        severity="info",
        confidence=0.95 if data.scanned else 0.8,
        title=f"{called(part, places[0])} is {what} in every sample{others}".replace("column", "Column", 1),
        evidence=(
            f"{called(part)}: column {listed(places)} of {part.width:,} never changes in {data.read()}",
            *(f"column {column} is {value} throughout" for column, value in values),
            *([f"column {listed(lost)} is NaN throughout: as if divided by a deviation of 0"] if lost else []),
        ),
        where=data.where(),
        fix=Fix(
            "Add a small number to the divisor where columns are standardized, or drop this one."
            if lost
            else "Drop the column, or look at how it is read if it should vary."
        ),
        seen_by="flight",
        also=data.also(),
    )


RULE = Rule("constant-feature", "data", decide, gathers=True)
