"""Statistics of the columns of a table, gathered piece by piece: exact counts, safe means, extremes with their samples.

Two that were gathered apart can be merged, so that several processes may each read a part.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXTREMES = 9
"""Lowest and highest values of a column that are kept, each with the sample it came from."""
BAD_ROWS = 32
"""Samples with NaN or infinity that are named."""
UNKNOWN = -1
"""A sample whose index nobody knows."""
ADDED = ("rows", "count", "nan", "plus", "minus", "zeros")


class Columns:
    """One number a column in each of its tensors, all of double precision."""

    def __init__(self, width: int) -> None:
        self.width = width
        for name in (*ADDED, "mean", "m2", "at_low", "at_high"):
            setattr(self, name, _full(width, 0.0))
        self.low, self.high = _full(width, float("inf")), _full(width, float("-inf"))
        self.whole = _full(width, 1.0)
        self.ends: list[tuple[Any, Any]] = [_no_ends(width), _no_ends(width)]
        """Lowest and highest: values and samples, each with one row a place."""
        self.bad_samples: list[int] = []
        self.bad_rows = 0

    def take(self, table: Any, samples: Any) -> None:
        """`table`: rows by columns; `samples`: the index of each row's sample, a tensor of whole numbers."""
        torch = sys.modules["torch"]
        table = table.double()
        if not table.shape[0]:
            return
        finite = torch.isfinite(table)
        new = Columns(self.width)
        new.rows += table.shape[0]
        if bool(finite.all()):
            new.count += table.shape[0]
            new.mean = table.mean(0)
            known = table
        else:
            known = self._take_bad(new, table, finite, samples)
        new.m2 = (((known - new.mean) ** 2) * finite).sum(0)
        new.low, new.high = torch.where(finite, table, float("inf")).amin(0), _highest(table, finite)
        new.at_low = (table == new.low).double().sum(0)
        new.at_high = (table == new.high).double().sum(0)
        new.zeros = (table == 0).double().sum(0)
        new.whole = (known.floor() == known).logical_or(~finite).all(0).double()
        for place, (fill, largest) in enumerate(((float("inf"), False), (float("-inf"), True))):
            filled = torch.where(finite, table, fill)
            values, rows = torch.topk(filled, min(EXTREMES, table.shape[0]), dim=0, largest=largest)
            new.ends[place] = (values, samples[rows])
        self.merge(new)

    def _take_bad(self, new: Columns, table: Any, finite: Any, samples: Any) -> Any:
        """Count what is no number; gives the table with the mean in its place."""
        torch = sys.modules["torch"]
        new.count = finite.double().sum(0)
        new.nan = torch.isnan(table).double().sum(0)
        new.plus, new.minus = (table == float("inf")).double().sum(0), (table == float("-inf")).double().sum(0)
        new.mean = torch.where(finite, table, 0.0).sum(0) / new.count.clamp_min(1)
        bad = samples[~finite.all(1)].unique_consecutive()
        new.bad_rows = int(bad.numel())
        new.bad_samples = [each for each in bad[:BAD_ROWS].tolist() if each != UNKNOWN]
        return torch.where(finite, table, new.mean)

    def merge(self, other: Columns) -> None:
        """As if what `other` has read had been read here (after Chan, Golub and LeVeque)."""
        torch = sys.modules["torch"]
        both = (self.count + other.count).clamp_min(1)
        apart = other.mean - self.mean
        self.m2 = self.m2 + other.m2 + apart * apart * self.count * other.count / both
        self.mean = self.mean + apart * other.count / both
        for mine, theirs, at, lower in (
            (self.low, other.low, "at_low", torch.minimum),
            (self.high, other.high, "at_high", torch.maximum),
        ):
            best = lower(mine, theirs)
            kept = getattr(self, at) * (mine == best) + getattr(other, at) * (theirs == best)
            setattr(self, at, kept)
        self.low, self.high = torch.minimum(self.low, other.low), torch.maximum(self.high, other.high)
        self.whole = self.whole * other.whole
        for name in ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for place, largest in enumerate((False, True)):
            self.ends[place] = _best(self.ends[place], other.ends[place], largest)
        self.bad_samples = list(dict.fromkeys((*self.bad_samples, *other.bad_samples)))[:BAD_ROWS]
        self.bad_rows += other.bad_rows

    def deviations(self) -> Any:
        """Standard deviation of each column."""
        return (self.m2 / self.count.clamp_min(1)).clamp_min(0).sqrt()

    def plain(self, column: int) -> dict[str, Any]:
        """All that is known of one column."""
        count = int(self.count[column])
        told: dict[str, Any] = {
            "column": column,
            "rows": int(self.rows[column]),
            "count": count,
            "nan": int(self.nan[column]),
            "plus": int(self.plus[column]),
            "minus": int(self.minus[column]),
            "zeros": int(self.zeros[column]),
        }
        if count:
            told.update(
                min=float(self.low[column]),
                max=float(self.high[column]),
                mean=float(self.mean[column]),
                sd=float(self.deviations()[column]),
                at_min=int(self.at_low[column]),
                at_max=int(self.at_high[column]),
                whole=bool(self.whole[column]),
                lowest=_listed(self.ends[0], column),
                highest=_listed(self.ends[1], column),
            )
        return told


def _full(width: int, value: float) -> Any:
    torch = sys.modules["torch"]
    return torch.full((width,), value, dtype=torch.float64, device="cpu")


def _no_ends(width: int) -> tuple[Any, Any]:
    torch = sys.modules["torch"]
    return (
        torch.empty((0, width), dtype=torch.float64, device="cpu"),
        torch.empty((0, width), dtype=torch.int64, device="cpu"),
    )


def _highest(table: Any, finite: Any) -> Any:
    return sys.modules["torch"].where(finite, table, float("-inf")).amax(0)


def _best(mine: tuple[Any, Any], theirs: tuple[Any, Any], largest: bool) -> tuple[Any, Any]:
    torch = sys.modules["torch"]
    values, samples = torch.cat((mine[0], theirs[0])), torch.cat((mine[1], theirs[1]))
    if values.shape[0] <= 1:
        return values, samples
    if mine[0].shape[0] and theirs[0].shape[0]:  # the same sample may come again in a later pass
        again = ((theirs[1].unsqueeze(1) == mine[1].unsqueeze(0)) & (theirs[1] != UNKNOWN).unsqueeze(1)).any(1)
        worst = float("-inf") if largest else float("inf")
        values = torch.cat((mine[0], torch.where(again, worst, theirs[0])))
    best, rows = torch.topk(values, min(EXTREMES, values.shape[0]), dim=0, largest=largest)
    return best, samples.gather(0, rows)


def _listed(ends: tuple[Any, Any], column: int) -> list[list[float]]:
    values, samples = ends[0][:, column].tolist(), ends[1][:, column].tolist()
    return [[value, sample] for value, sample in zip(values, samples, strict=True) if value - value == 0]
