"""constant-feature: a column of the input, or all of it, is the same for every sample.

What it sees
    A column whose lowest and highest value are the same, over all samples read; or one that is NaN in every sample. Or
    all inputs are the same for at least 98 of 100 samples: that is an error where the model also does no better than a
    constant prediction.

Why it matters
    The column says nothing, and often hides a mistake in how it is read. Standardizing it divides by a deviation of 0:
    from then on it is NaN, and so is the loss. Where all inputs are the same, the model can only learn the mean.

Evidence
    The column, its value, and how many samples were read; how many values differ, and what a constant prediction would
    reach.

Fix
    Drop the column; or, if it should vary, look at how it is read (a wrong name, a failed join, a lost type). Fractions
    that are written into an array of whole numbers become 0: `np.zeros_like(counts)` takes over the integer type.

When it is wrong
    A column of ones may stand for the bias. During a training only some batches are read and may lack a rare value, so
    columns of nothing but 0 or 1 are left to `unstuck scan`. One column is information only. Rows of mostly zeros that
    differ in a few places (one-hot codes, counts of words) are not the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from unstuck.model import Case, Finding
from unstuck.recorder.records.data import ColumnStats, PartSeen
from unstuck.rules.data.contents import FEATURE_ROLES, Data, listed, number, part_name, read_data
from unstuck.rules.rule import Rule

MIN_ROWS = 64
MAX_SHARE = 0.2  # of the columns: more are the border of a picture, or padding
MAX_OTHERS = 0.02  # of the samples, that are not like all others


def decide(case: Case) -> Iterable[Finding]:
    for data in read_data(case):
        inputs = [part for part in data.loader.parts if part.role not in ("target", "other")]
        if inputs and not data.loader.texts and all(_is_same_throughout(part) for part in inputs):
            if data.useless or data.scanned:
                yield _all_the_same(data, inputs)
            continue
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


def _is_same_throughout(part: PartSeen) -> bool:
    """Hardly a sample is unlike the others, as far as the columns that were looked at can show."""
    if part.role not in FEATURE_ROLES or part.scale is None:
        return False
    if part.rows * part.scale.columns < MIN_ROWS * part.width:
        return False  # rows that differ in one place each might differ elsewhere
    return _others(part) <= MAX_OTHERS * part.rows


def _others(part: PartSeen) -> float:
    """Values that are not their column's usual one: no more samples than that differ."""
    if part.scale is not None and part.scale.widest is None:
        return part.bad_rows
    if len(part.columns) < part.width:
        return inf
    return sum(column.rows - _usual(column)[1] for column in part.columns)


def _usual(column: ColumnStats) -> tuple[float, int]:
    """A value at one end of the column, or 0: that which is most frequent, and how often it is there."""
    known = column.numbers
    ends = [(known.min, known.at_min), (known.max, known.at_max)] if known is not None else []
    return max([(0.0, column.zeros), *ends], key=lambda each: each[1])


def _all_the_same(data: Data, inputs: list[PartSeen]) -> Finding:
    values = sorted({_usual(column)[0] for part in inputs for column in part.columns})
    only = f": {number(values[0])} everywhere" if len(values) == 1 else ""
    others = sum(int(_others(part)) for part in inputs)
    names = ", ".join(part_name(part) for part in inputs)
    return RULE.finding(
        severity="error" if data.useless else "info",
        confidence=0.9,
        title=f"The input is the same for every sample{only}",
        evidence=(
            f"{names}, over {data.extent()}: {f'only {others:,}' if others else 'no'} values differ from the usual one "
            "of their column",
            data.harm(),
        ),
        where=data.where(),
        fix="Print some samples after each step that prepares them. Fractions that are written into an array of whole "
        "numbers become 0: make it with `dtype=np.float32` (`np.zeros_like` takes over the type).",
        also=data.also(),
    )


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


RULE = Rule(
    "constant-feature",
    "data",
    decide,
    explains=frozenset(("predicts-one-class", "no-better-than-constant", "labels-unrelated-to-inputs")),
    gathers=True,
)
