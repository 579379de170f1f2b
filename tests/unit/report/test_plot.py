"""The shapes of curves, also of those that are hard to draw."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from unstuck.report.plot import MAX_COLUMNS, ROWS, Mark, draw, is_log, numbers


def curve(values: Sequence[float]) -> list[tuple[float, float]]:
    return list(enumerate(values))


def body(values: Sequence[float], *, unicode: bool = False) -> list[str]:
    return [row.body for row in draw(curve(values), unicode=unicode)[:ROWS]]


def heights(values: Sequence[float]) -> list[int]:
    """Of each column of the ASCII drawing the highest star, counted from below."""
    rows = body(values)
    columns = max(map(len, rows))
    return [
        max((ROWS - 1 - y for y, row in enumerate(rows) if row[x : x + 1] == "*"), default=-1) for x in range(columns)
    ]


def text(points: Sequence[tuple[float, float]], *marks: Mark, width: int = 80, unicode: bool = True) -> list[str]:
    return ["".join(row).rstrip() for row in draw(points, marks, width=width, unicode=unicode)]


def test_a_falling_curve_falls() -> None:
    seen = heights([2 * math.exp(-n / 20) + 0.5 for n in range(100)])
    assert len(seen) == MAX_COLUMNS
    assert seen == sorted(seen, reverse=True)
    assert (seen[0], seen[-1]) == (ROWS - 1, 0)


def test_a_flat_curve_is_a_line_whatever_its_noise() -> None:
    assert set(heights([2.303 + 0.001 * (n % 3) for n in range(100)])) == {ROWS // 2}
    assert set(heights([0.0] * 20)) == {ROWS // 2}


def test_a_spike_stands_out_at_its_place() -> None:
    seen = heights([1.0 + (30 if n == 50 else 0) for n in range(101)])
    assert seen[30] == ROWS - 1
    assert set(seen[:28] + seen[33:]) == {0}


def test_negative_values_and_their_labels() -> None:
    lines = text(curve([-0.1 * n for n in range(40)]))
    assert lines[0].startswith("   0 ┤")
    assert lines[ROWS - 1].startswith("-3.9 ┤")
    assert lines[ROWS] == "     └" + "─" * MAX_COLUMNS
    assert lines[ROWS + 1].split() == ["0", "39"]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [([1.0, 99.0], False), ([1.0, 101.0], True), ([0.0, 500.0], False), ([-1.0, 500.0], False), ([], False)],
)
def test_a_wide_span_of_positive_values_is_logarithmic(values: list[float], wanted: bool) -> None:
    assert is_log(values) is wanted


def test_huge_values() -> None:
    rising = heights([10.0**n for n in range(-300, 300)])
    assert rising == sorted(rising)
    lines = text(curve([1.7e308 * (-1) ** n for n in range(20)]))
    assert lines[0].startswith(" 1.7e+308 ┤")
    assert lines[ROWS - 1].startswith("-1.7e+308 ┤")
    assert text(curve([5e-324, 1.0]))


def test_one_value() -> None:
    lines = text([(5, 1.0)])
    assert lines[ROWS // 2].startswith("1 ┤")
    assert len(lines[ROWS // 2]) == len("1 ┤") + 1
    assert lines[-1] == "   5"
    assert text([]) == []


def test_what_is_no_number_is_marked_behind_the_last_value() -> None:
    mark = Mark(12, "✖", "no number from step 12")
    lines = text(curve([1.0 + n for n in range(12)]), mark)
    assert lines[-1].endswith("no number from step 12 ✖")
    assert len(lines[-1]) == len(lines[ROWS])  # at the last column, and it stands for the last step
    assert len(lines) == ROWS + 2
    assert len(lines[0]) < len(lines[ROWS])


def test_a_mark_stands_beneath_its_step() -> None:
    lines = text(curve([1.0 + n for n in range(119)]), Mark(59, "▲", "step 59"))
    assert lines[-1].index("▲") - lines[ROWS].index("└") - 1 == round(59 / 118 * (MAX_COLUMNS - 1))
    assert lines[-1].split() == ["0", "▲", "step", "59", "118"]


def test_marks_that_collide_get_lines_of_their_own() -> None:
    marks = [Mark(50, "▲", "step 50"), Mark(52, "✖", "no number from step 52")]
    lines = text(curve([1.0 + n for n in range(100)]), *marks)
    assert "▲ step 50" in lines[-2]
    assert "✖ no number from step 52" in lines[-1]
    assert lines[-2].endswith("99")


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("width", [30, 40, 66, 200])
def test_it_keeps_to_the_width(width: int, unicode: bool) -> None:
    marks = [Mark(3, "!", "step 3"), Mark(199, "x", "no number from step 199")]
    lines = text(curve([1e-3 * n for n in range(200)]), *marks, width=width, unicode=unicode)
    assert max(map(len, lines)) <= min(width, 5 + 2 + MAX_COLUMNS)
    assert all(line.isascii() for line in lines) or unicode
    assert all(line == line.rstrip() for line in lines)


def test_where_there_is_no_room_there_is_no_drawing() -> None:
    assert draw(curve([1.0, 2.0]), width=17) == []


def test_every_row_has_dots_of_the_curve_only() -> None:
    assert body([0.0, 1.0], unicode=True)[0].strip().startswith(("⢀", "⣀", "⡠", "⠔", "⠤", "⠒"))
    assert all(c == " " or 0x2800 < ord(c) < 0x2900 for row in body([3.0, 1.0, 2.0], unicode=True) for c in row)


def test_numbers_are_short_but_differ() -> None:
    assert numbers(2841.2, 1.01) == ["2,841", "1.01"]
    assert numbers(0.69318, 0.69312) == ["0.6932", "0.6931"]
    assert numbers(1.16e11, 0.0) == ["1.16e+11", "0"]
    assert numbers(2.0, 2.0) == ["2", "2"]
