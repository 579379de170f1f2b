"""A curve drawn with characters: braille dots, or stars where the output knows only ASCII."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

MAX_COLUMNS, MIN_COLUMNS = 60, 16  # of the drawing without its axis
ROWS = 7
MIN_LOG_FACTOR = 100.0  # positive values that span more are drawn on a logarithmic scale
MIN_SPAN_SHARE = 0.1  # of its level that the height stands for: else the noise of a flat curve would look like peaks

# Which dot of a braille character is at (row, column): its bit in the code point.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


class Mark(NamedTuple):
    step: int
    sign: str
    words: str


class Row(NamedTuple):
    """One line of the drawing: what stands left of the axis, the axis, and right of it."""

    label: str
    axis: str
    body: str


def is_log(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) / min(values) > MIN_LOG_FACTOR


def draw(
    points: Sequence[tuple[float, float]], marks: Sequence[Mark] = (), *, width: int = 80, unicode: bool = True
) -> list[Row]:
    """Steps and finite values, in order of steps. Nothing comes back where there is no room or no point."""
    if not points:
        return []
    values = [value for _, value in points]
    highest, lowest = numbers(max(values), min(values))
    gutter = max(len(highest), len(lowest))
    columns = min(MAX_COLUMNS, width - gutter - 2)
    if columns < MIN_COLUMNS:
        return []
    first, last = (edge([points[0][0], points[-1][0], *(m.step for m in marks)]) for edge in (min, max))
    across, down = (2, 4) if unicode else (1, 1)
    x = [_at(step, first, last, columns * across) for step, _ in points]
    y = [round((1 - height) * (ROWS * down - 1)) for height in _heights(values)]
    grid = _raster(list(zip(x, y, strict=True)), columns * across, ROWS * down)
    labels = {max(y) // down: lowest, min(y) // down: highest}
    tick, bar, corner, line = "┤│└─" if unicode else "||+-"
    rows = [
        Row(labels.get(row, "").rjust(gutter), " " + (tick if row in labels else bar), text)
        for row, text in enumerate(_cells(grid, across, down))
    ]
    rows.append(Row(" " * gutter, " " + corner, line * columns))
    return rows + [Row(" " * gutter, "  ", text) for text in _below(first, last, marks, columns)]


def numbers(*values: float) -> list[str]:
    """As short as possible, but such that what differs reads differently."""
    for digits in range(3, 17):
        texts = [_number(value, digits) for value in values]
        if len(set(texts)) == len(set(values)):
            break
    return texts


def _number(value: float, digits: int) -> str:
    value += 0.0  # no -0
    return f"{value:,.{max(0, digits - 4)}f}" if 1000 <= abs(value) < 1e7 else f"{value:.{digits}g}"


def _heights(values: Sequence[float]) -> list[float]:
    """Each value between 0 and 1."""
    if is_log(values):
        values = [math.log10(value) for value in values]
        low, high = min(values), max(values)
    else:
        largest = max(map(abs, values)) or 1.0
        values = [value / largest for value in values]  # the distance between two huge ones is infinite
        low, high = min(values), max(values)
        more = max(0.0, MIN_SPAN_SHARE - (high - low)) / 2
        low, high = low - more, high + more
    return [(value - low) / (high - low) for value in values]


def _at(step: float, first: float, last: float, places: int) -> int:
    return round((step - first) / (last - first) * (places - 1)) if last > first else 0


def _raster(dots: Sequence[tuple[int, int]], width: int, height: int) -> list[list[bool]]:
    """The dots, each joined to the next."""
    grid = [[False] * width for _ in range(height)]
    x, y = dots[0]
    for to_x, to_y in dots:
        steps = max(abs(to_x - x), abs(to_y - y), 1)
        for n in range(steps + 1):
            grid[round(y + (to_y - y) * n / steps)][round(x + (to_x - x) * n / steps)] = True
        x, y = to_x, to_y
    return grid


def _cells(grid: list[list[bool]], across: int, down: int) -> list[str]:
    rows = []
    for top in range(0, len(grid), down):
        row = ""
        for left in range(0, len(grid[0]), across):
            bits = sum(_DOTS[y][x] for y in range(down) for x in range(across) if grid[top + y][left + x])
            row += " " if not bits else "*" if down == 1 else chr(0x2800 + bits)
        rows.append(row.rstrip())
    return rows


def _below(first: float, last: float, marks: Sequence[Mark], columns: int) -> list[str]:
    """The first and the last step, and the marks beneath theirs: in the first line where there is room."""
    rows = [" " * columns]
    ends = {round(last): columns - len(f"{last:,.0f}"), round(first): 0}
    spots = [(at, f"{step:,}") for step, at in ends.items() if all(mark.step != step for mark in marks)]
    for mark in marks:
        at, text = _at(mark.step, first, last, columns), f"{mark.sign} {mark.words}"
        if at + len(text) > columns:
            text = f"{mark.words} {mark.sign}"
            at -= len(text) - 1
        spots.append((max(0, at), text[:columns]))
    for at, text in spots:
        free = (n for n, row in enumerate(rows) if not row[max(0, at - 1) : at + len(text) + 1].strip())
        number = next(free, len(rows))
        if number == len(rows):
            rows.append(" " * columns)
        rows[number] = rows[number][:at] + text + rows[number][at + len(text) :]
    return [row.rstrip() for row in rows]
