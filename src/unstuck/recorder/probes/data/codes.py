"""Columns of codes: how much they say of the target, each code for itself; taken as a number; and where codes that are
neighbours mean nearly the same, as counts, ages, times and ratings do.

A sample may have several codes, as a molecule has atoms: then it counts how often each is there.
"""

from __future__ import annotations

import sys
from math import pi
from typing import Any

from ...records.data import Link
from . import relation

CODES = range(3, 101)  # distinct values that a column of codes may have
MIN_EVEN = 16  # of numbers that are not whole; fewer may be in order by chance
MIN_FILLED = 0.5  # of the even distances between these
ROUNDING = 0.01  # of one
ROWS_A_CODE = 8
MOST_CODED = 64  # columns that are compared with the target
CODES_A_WAVE = 6  # where neighbours mean nearly the same
MIN_FROM_CHANCE = 6.0  # standard deviations; nearer, it shows nothing whether they do


def links(table: Any, target: Any, labelled: bool) -> dict[int, Link]:
    """Of samples, places and columns, by column; the target has one number a sample."""
    torch = sys.modules["torch"]
    good = torch.isfinite(table).flatten(1).all(1) & torch.isfinite(target[:, 0])
    table, target = table[good], target[good, 0]
    groups = relation.groups_of(target, labelled) if target.numel() else None
    if groups is None or not groups.shape[1]:
        return {}
    found = ((column, _link(table[:, :, column], groups)) for column in range(min(MOST_CODED, int(table.shape[2]))))
    return {column: link for column, link in found if link is not None}


def _link(values: Any, groups: Any) -> Link | None:
    """`values`: by sample and place."""
    torch = sys.modules["torch"]
    known, code = torch.unique(values, return_inverse=True)
    count, (rows, places) = int(known.numel()), values.shape
    if count not in CODES or rows < ROWS_A_CODE * count or not _is_coded(known):
        return None
    times: Any = torch.nn.functional.one_hot(code, count).sum(1).double()
    if places > 1 and bool((known == 0).any()):  # it may fill places that a sample has not got
        filler = relation.whitened(times[:, known == 0])
        times, groups, values = (_without(each, filler) for each in (times, groups, values.sum(1, keepdim=True)))
    category, shared, far = _shared(times, groups)
    number, _, _ = _shared(values.sum(1, keepdim=True), groups)
    smooth = one = None
    if count >= MIN_EVEN and far >= MIN_FROM_CHANCE:
        waves = count // CODES_A_WAVE
        expected, free = waves / (count - 1), (count + 1) / 2
        chance = (expected * (1 - expected) / (free * int(groups.shape[1]))) ** 0.5
        smooth = (_shared(times @ _waves(count, waves), groups)[1] / shared - expected) / chance
        one = max(_shared(times[:, [code]], groups)[1] for code in range(count)) / shared
    if smooth is None and places > 1:
        return None
    return Link(as_category=category, as_number=number, codes=count, smooth=smooth, one=one, rows=rows)


def _without(table: Any, other: Any) -> Any:
    """What the other one does not say already."""
    return table - other @ (other.T @ (table - table.mean(0))) / int(table.shape[0])


def _waves(count: int, waves: int) -> Any:
    """By code, and the number of half waves over all codes."""
    torch = sys.modules["torch"]
    place = (torch.arange(count, dtype=torch.float64, device="cpu") + 0.5) / count
    return (place.unsqueeze(1) * torch.arange(waves + 1, device="cpu") * pi).cos()


def _is_coded(known: Any) -> bool:
    """Whole numbers, or many at even distances, wherever they begin; a zero between them may fill a gap."""
    if bool((known == known.round()).all()):
        return True
    return any(_is_even(each) for each in (known, known[known != 0]))


def _is_even(known: Any) -> bool:
    gaps = known.diff()
    if known.numel() < MIN_EVEN:
        return False
    steps = gaps / gaps.min()
    filled = known.numel() >= MIN_FILLED * float(steps.sum())
    return filled and float((steps - steps.round()).abs().max()) < ROUNDING


def _shared(table: Any, groups: Any) -> tuple[float, float, float]:
    """What a table says of the target, less what chance gives: from 0 to 1; as a sum over its columns; and how far that
    is from chance, in standard deviations."""
    white = relation.whitened(table, int(table.shape[1]))
    if not white.shape[1]:
        return 0.0, 0.0, 0.0
    common, by_chance = relation.common(white, groups)
    share = (common - by_chance) / int(table.shape[0])
    most = min(int(white.shape[1]), int(groups.shape[1]))
    return max(0.0, share / most) ** 0.5, share, (common - by_chance) / (2 * by_chance) ** 0.5
