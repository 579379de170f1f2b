"""Statistics of the columns of a table, gathered piece by piece: exact counts, safe means, extremes with their samples;
and in a few numbers how the columns are scaled, and how the values of each are spread.

Two that were gathered apart can be merged, so that several processes may each read a part.
"""

from __future__ import annotations

import sys
from typing import Any

from ...records.data import ColumnStats, LargestColumn, Link, Numbers, OffsetColumn, Scale, Spread, WidestColumn

EXTREMES = 9  # lowest and highest values of a column that are kept, each with the sample it came from
BAD_ROWS = 32  # samples with NaN or infinity that are named
UNKNOWN = -1  # a sample whose index nobody knows
ADDED = ("rows", "count", "nan", "plus", "minus", "zeros")


class Columns:
    """One number a column in each of its tensors, all of double precision."""

    def __init__(self, width: int) -> None:
        self.width = width
        none = _full(width, 0.0)  # every reading puts new ones in their places
        self.rows = self.count = self.nan = self.plus = self.minus = self.zeros = none
        self.mean = self.m2 = self.at_low = self.at_high = none
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
        new = Columns(self.width)
        new.rows = _full(self.width, float(table.shape[0]))
        if bool(torch.isfinite(table.sum())):  # one bad value would have made the sum bad
            new.count, new.mean = new.rows, table.mean(0)
            new.m2 = ((table - new.mean) ** 2).sum(0)
            new.whole = (table.floor() == table).all(0).double()
            lowest = highest = table
        else:
            lowest, highest = new._take_bad(table, samples)
        new.low, new.high = lowest.amin(0), highest.amax(0)
        new.at_low = (table == new.low).double().sum(0)
        new.at_high = (table == new.high).double().sum(0)
        new.zeros = (table == 0).double().sum(0)
        for place, (filled, largest) in enumerate(((lowest, False), (highest, True))):
            values, rows = torch.topk(filled, min(EXTREMES, table.shape[0]), dim=0, largest=largest)
            new.ends[place] = (values, samples[rows])
        self.merge(new)

    def _take_bad(self, table: Any, samples: Any) -> tuple[Any, Any]:
        """A table in which not all are numbers; gives it with these out of the way of the lowest and the highest."""
        torch = sys.modules["torch"]
        finite = torch.isfinite(table)
        self.count = finite.double().sum(0)
        self.nan = torch.isnan(table).double().sum(0)
        self.plus, self.minus = (table == float("inf")).double().sum(0), (table == float("-inf")).double().sum(0)
        self.mean = torch.where(finite, table, 0.0).sum(0) / self.count.clamp_min(1)
        self.m2 = (torch.where(finite, table - self.mean, 0.0) ** 2).sum(0)
        self.whole = (table.floor() == table).logical_or(~finite).all(0).double()
        bad = samples[~finite.all(1)]
        if bad.numel() and int(bad[0]) != UNKNOWN:
            bad = bad.unique_consecutive()  # pixels of one image
        self.bad_rows = int(bad.numel())
        self.bad_samples = [each for each in bad[:BAD_ROWS].tolist() if each != UNKNOWN]
        return torch.where(finite, table, float("inf")), torch.where(finite, table, float("-inf"))

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

    def stats(self, column: int, place: int, spread: Spread | None = None, link: Link | None = None) -> ColumnStats:
        """All that is known of one column; `place`: that which it has in the part."""
        count = int(self.count[column])
        return ColumnStats(
            column=place,
            rows=int(self.rows[column]),
            count=count,
            nan=int(self.nan[column]),
            plus=int(self.plus[column]),
            minus=int(self.minus[column]),
            zeros=int(self.zeros[column]),
            numbers=self._numbers(column) if count else None,
            spread=spread,
            link=link,
        )

    def _numbers(self, column: int) -> Numbers:
        return Numbers(
            min=rounded(self.low[column]),
            max=rounded(self.high[column]),
            mean=rounded(self.mean[column]),
            sd=rounded(self.deviations()[column]),
            at_min=int(self.at_low[column]),
            at_max=int(self.at_high[column]),
            whole=bool(self.whole[column]),
            lowest=_listed(self.ends[0], column),
            highest=_listed(self.ends[1], column),
        )


def _full(width: int, value: float) -> Any:
    torch = sys.modules["torch"]
    return torch.full((width,), value, dtype=torch.float64, device="cpu")


def _no_ends(width: int) -> tuple[Any, Any]:
    torch = sys.modules["torch"]
    return (
        torch.empty((0, width), dtype=torch.float64, device="cpu"),
        torch.empty((0, width), dtype=torch.int64, device="cpu"),
    )


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


def _listed(ends: tuple[Any, Any], column: int) -> list[tuple[float, int]]:
    values, samples = ends[0][:, column].tolist(), ends[1][:, column].tolist()
    return [(rounded(value), sample) for value, sample in zip(values, samples, strict=True) if value - value == 0]


def rounded(value: Any) -> float:
    """A record need not be longer than single precision."""
    return float(f"{float(value):.8g}")


# --- in a few numbers ----------------------------------------------------------------------------------------------


def scale(known: Columns) -> Scale | None:
    """How far the columns are from each other and from 0."""
    used = known.count >= 2
    if not bool(used.any()):
        return None
    torch = sys.modules["torch"]
    deviations = known.deviations()
    moving = used & (deviations > 1e-9 * known.mean.abs().clamp_min(1e-30))
    size = torch.where(used, known.mean.abs() + 2 * deviations, -1.0)
    at = int(size.argmax())
    largest = LargestColumn(
        column=at, size=float(size[at]), low=float(known.low[at]), high=float(known.high[at])
    )  # fmt: skip
    if not bool(moving.any()):
        return Scale(columns=int(used.sum()), largest=largest)
    widths, places = deviations[moving], moving.nonzero().reshape(-1)
    offsets = known.mean.abs()[moving] / widths
    widest, furthest = int(widths.argmax()), int(offsets.argmax())
    place = int(places[furthest])
    return Scale(
        columns=int(used.sum()),
        largest=largest,
        widest=WidestColumn(
            column=int(places[widest]), deviation=float(widths[widest]), middle=float(widths.median())
        ),
        offset=OffsetColumn(
            column=place,
            times=float(offsets[furthest]),
            mean=float(known.mean[place]),
            deviation=float(deviations[place]),
        ),
    )  # fmt: skip


def spread(known: dict[str, Any], column: int) -> Spread | None:
    """Of one column, as `spreads` has it; None: no row was kept."""
    if not known:
        return None
    values: dict[str, Any] = {name: rounded(each[column]) for name, each in known.items()}
    values.update({name: int(values[name]) for name in ("kept", "distinct", "inner_distinct")})
    return Spread(**values)


def spreads(kept: Any) -> dict[str, Any]:
    """Of each column of the rows kept: quartiles, the median distance from the median, how many values differ, and the
    range of what lies strictly between the lowest and the highest value."""
    torch = sys.modules["torch"]
    finite = torch.isfinite(kept)
    ordered = torch.where(finite, kept, float("inf")).sort(0).values
    count = finite.sum(0)

    def at(share: float) -> Any:
        place = ((count - 1).clamp_min(0) * share).round().long()
        return ordered.gather(0, place.unsqueeze(0)).squeeze(0)

    middle = at(0.5)
    apart = torch.where(finite, (kept - middle).abs(), float("inf")).sort(0).values
    mad = apart.gather(0, ((count - 1).clamp_min(0) // 2).unsqueeze(0)).squeeze(0)
    low, high = ordered[0], torch.where(finite, kept, float("-inf")).amax(0)
    inner = (ordered > low) & (ordered < high)
    fresh = torch.ones_like(inner)
    fresh[1:] = ordered[1:] != ordered[:-1]
    found = {
        "kept": count,
        "q01": at(0.01),
        "q25": at(0.25),
        "q50": middle,
        "q75": at(0.75),
        "q99": at(0.99),
        "mad": mad,
        "distinct": (fresh & torch.isfinite(ordered)).sum(0),
        "inner_low": torch.where(inner, ordered, float("inf")).amin(0),
        "inner_high": torch.where(inner, ordered, float("-inf")).amax(0),
        "inner_distinct": (fresh & inner).sum(0),
    }
    return {name: torch.nan_to_num(values.double(), 0.0, 0.0, 0.0) for name, values in found.items()}
