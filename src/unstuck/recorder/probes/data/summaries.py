"""Columns in a few numbers: how they are scaled, and how the values of each are spread."""

from __future__ import annotations

import sys

from ...records.data import LargestColumn, OffsetColumn, Scale, Spread, WidestColumn
from . import columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def scale(known: columns.Columns) -> Scale | None:
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
    values: dict[str, Any] = {name: columns.rounded(each[column]) for name, each in known.items()}
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
