"""A code inside sequences is told from clipping and from heavy tails, by numbers of the whole column."""

from __future__ import annotations

import pytest

from unstuck.recorder.records.data import ColumnStats, Numbers, PartSeen
from unstuck.rules.data.contents import Code, code_in


def found(value: float, count: int, mean: float, sd: float, others: int = 10_000) -> Code | None:
    """Of a column with so many of one value below all others, whose mean and deviation are these."""
    total = count + others
    whole = (count * value + others * mean) / total
    squares = (count * value**2 + others * (sd**2 + mean**2)) / total
    low, high = min(value, mean - 3 * sd), max(value, mean + 3 * sd)
    numbers = Numbers(
        min=low,
        max=high,
        mean=whole,
        sd=(squares - whole**2) ** 0.5,
        at_min=count if low == value else 1,
        at_max=count if high == value else 1,
    )
    return code_in(PartSeen(path="[0]", role="sequence"), ColumnStats(count=total, rows=total, numbers=numbers))


@pytest.mark.parametrize(("value", "mean", "sd"), [(-999.0, 0.0, 1.0), (-9999.0, 20.0, 8.0), (1e9, 0.0, 3.0)])
def test_a_code(value: float, mean: float, sd: float) -> None:
    code = found(value, 500, mean, sd)
    assert code is not None
    assert (code.value, code.count) == (value, 500)


@pytest.mark.parametrize(
    ("value", "count", "mean", "sd"),
    [
        (-999.0, 2, 0.0, 1.0),  # too rare
        (-999.0, 12_000, 0.0, 1.0),  # most of it: padding
        (1000.0, 500, 400.0, 200.0),  # clipped
        (32767.0, 500, 0.0, 900.0),  # the same, of a recording
        (-60.0, 500, 0.0, 1.0),  # nobody writes that for "unknown"
    ],
)
def test_what_is_none(value: float, count: int, mean: float, sd: float) -> None:
    assert found(value, count, mean, sd) is None
