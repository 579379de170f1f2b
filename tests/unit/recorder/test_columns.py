"""Statistics gathered piece by piece are those of the whole."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from unstuck.recorder.probes.data.columns import Columns
from unstuck.recorder.records.data import Numbers

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def numbers(columns: Columns, column: int) -> Numbers:
    found = columns.stats(column, column).numbers
    assert found is not None
    return found


def table(rows: int = 500, seed: int = 0) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 4, generator=g, dtype=torch.float64) * torch.tensor([1.0, 1e-3, 1e4, 5.0]) + torch.tensor(
        [0.0, 7.0, -2e6, 1e9]
    )
    x[:, 3] = torch.randint(-3, 4, (rows,), generator=g)
    return x


def pieces(x: torch.Tensor, sizes: tuple[int, ...] = (1, 37, 200)) -> list[tuple[torch.Tensor, torch.Tensor]]:
    ids = torch.arange(len(x))
    cuts = [0, *[sum(sizes[: n + 1]) for n in range(len(sizes))], len(x)]
    return [(x[a:b], ids[a:b]) for a, b in itertools.pairwise(cuts)]


def test_moments_are_exact() -> None:
    x = table()
    columns = Columns(4)
    for part, ids in pieces(x):
        columns.take(part, ids)
    for column in range(4):
        told = numbers(columns, column)
        assert columns.stats(column, 0).count == columns.stats(column, 0).rows == 500
        assert told.mean == pytest.approx(float(x[:, column].mean()), rel=1e-7, abs=1e-9)
        assert told.sd == pytest.approx(float(x[:, column].std(correction=0)), rel=1e-6)
        assert (told.min, told.max) == pytest.approx((float(x[:, column].min()), float(x[:, column].max())))
    assert numbers(columns, 3).whole
    assert not numbers(columns, 0).whole
    assert columns.stats(3, 0).zeros == int((x[:, 3] == 0).sum())
    assert numbers(columns, 3).at_min == int((x[:, 3] == -3).sum())
    assert numbers(columns, 3).at_max == int((x[:, 3] == 3).sum())


def test_a_small_spread_far_from_zero_is_not_lost() -> None:
    x = 1e8 + torch.tensor([[0.0], [1.0], [2.0], [3.0]] * 100, dtype=torch.float64)
    columns = Columns(1)
    for part, ids in pieces(x, (3, 50)):
        columns.take(part, ids)
    assert numbers(columns, 0).sd == pytest.approx(math.sqrt(1.25))


def test_what_is_no_number_is_counted_and_named() -> None:
    x = table(60)
    x[7, 0] = x[41, 0] = float("nan")
    x[8, 1], x[9, 1] = float("inf"), float("-inf")
    good = x[torch.isfinite(x[:, 0]), 0]
    columns = Columns(4)
    for part, ids in pieces(x, (5, 20)):
        columns.take(part, ids + 1000)
    assert columns.stats(0, 0).nan == 2
    assert (columns.stats(1, 0).plus, columns.stats(1, 0).minus) == (1, 1)
    assert columns.stats(0, 0).count == 58
    assert numbers(columns, 0).mean == pytest.approx(float(good.mean()))
    assert numbers(columns, 0).sd == pytest.approx(float(good.std(correction=0)), rel=1e-6)
    assert columns.bad_samples == [1007, 1008, 1009, 1041]
    assert columns.bad_rows == 4


def test_a_column_of_nothing_but_nan() -> None:
    columns = Columns(2)
    columns.take(torch.tensor([[float("nan"), 1.0], [float("nan"), 2.0]]), torch.tensor([0, 1]))
    stats = columns.stats(0, 5)
    assert (stats.column, stats.rows, stats.count, stats.nan, stats.plus, stats.minus, stats.zeros) == (
        5,
        2,
        0,
        2,
        0,
        0,
        0,
    )
    assert stats.numbers is None
    assert numbers(columns, 1).mean == 1.5


def test_extremes_keep_their_samples_once() -> None:
    x = table(300)
    columns = Columns(4)
    for _ in range(2):  # two epochs: the same samples come again
        for part, ids in pieces(x):
            columns.take(part, ids)
    order = x[:, 0].argsort(descending=True)
    assert [sample for _, sample in numbers(columns, 0).highest] == order[:9].tolist()
    assert [sample for _, sample in numbers(columns, 0).lowest] == order.flip(0)[:9].tolist()


def test_two_gathered_apart_are_one() -> None:
    x = table()
    apart, whole = [Columns(4), Columns(4)], Columns(4)
    whole.take(x, torch.arange(500))
    for number, (part, ids) in enumerate(pieces(x)):
        apart[number % 2].take(part, ids)
    apart[0].merge(apart[1])
    for column in range(4):
        mine, theirs = numbers(apart[0], column), numbers(whole, column)
        assert mine.sd == pytest.approx(theirs.sd, rel=1e-7)
        assert [s for _, s in mine.highest][:3] == [s for _, s in theirs.highest][:3] or column == 3
