"""What was gathered of the data, as a plain fact for the rules: each part with its role, and columns worth a look."""

from __future__ import annotations

import sys
from math import log

from ... import tensors
from . import associations, columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .statistics import Gathered, Part

COLUMNS = 48
"""Columns that are told one by one; of more, the oddest."""
CLASSES = 64


def told(gathered: Gathered) -> dict[str, Any]:
    target = _target(gathered)
    targets = [path for path in (*gathered.targets, target) if path is not None and path not in gathered.used]
    left = {**dict.fromkeys(_others(gathered, target), "other"), **dict.fromkeys(targets, "target")}
    parts = [_part(gathered, part, left.get(path, "")) for path, part in gathered.parts.items()]
    op, _ = gathered.targets.get(target or "", ("", None))
    return {
        "rows": gathered.rows,
        "batches": gathered.batches,
        "whole": gathered.whole,
        "parts": parts,
        "texts": [[path, *about] for path, about in gathered.texts.items()],
        "target": target,
        "target_seen": bool(gathered.targets),
        "target_op": op,
        "labels": _labels(gathered, target),
    }


def _target(gathered: Gathered) -> str | None:
    """What the loss got, if something else is left for the model; else where targets are by custom."""
    numeric = [path for path, part in gathered.parts.items() if part.kind != "mask"]
    if gathered.targets:
        return next(iter(gathered.targets)) if len(numeric) > 1 else None
    return tensors.target_among(list(gathered.parts))


def _others(gathered: Gathered, target: str | None) -> list[str]:
    """What may be the target of a second task, a weight or an index: what comes after the target, or is named like
    one, and was not seen to be given to a layer. A row of features does, if something else was."""
    found = []
    for path, part in gathered.parts.items():
        if target is None or path in gathered.used or not tensors.beside_target(path, target):
            continue
        if part.kind in ("label", "number") or gathered.used:
            found.append(path)
    return found


def _part(gathered: Gathered, part: Part, role: str) -> dict[str, Any]:
    role = role or _role(part)
    about: dict[str, Any] = {
        "path": part.path,
        "role": role,
        "dtype": part.dtype,
        "shape": part.shape,
        "rows": part.rows,
        "ragged": part.ragged,
        "columns": [],
    }
    if role not in ("features", "image", "sequence"):
        return about
    about["scale"] = scale(part.columns)
    about["bad_rows"], about["bad_samples"] = part.columns.bad_rows, part.columns.bad_samples
    about["width"] = part.whole_width
    kept = gathered.kept.parts.get(part.path)
    spread = _spread(kept) if kept is not None and part.each is None else None
    links = associations.links(gathered, part, kept) if role == "features" and kept is not None else {}
    for column in _odd(part, spread):
        plain = part.columns.plain(column)
        if spread is not None:
            plain.update({name: columns.rounded(values[column]) for name, values in spread.items()})
        if column in links:
            plain["as_category"], plain["as_number"], plain["codes"] = links[column]
        plain["column"] = column if part.chosen is None else int(part.chosen[column])
        about["columns"].append(plain)
    if part.each is not None and kept is not None:
        spread = _spread(kept)
        about["each"] = [
            {
                **part.each.plain(place),
                **{name: columns.rounded(values[place]) for name, values in spread.items()},
                "of": of,
            }
            for place, of in enumerate(("mean", "deviation"))
        ]
    return about


def _role(part: Part) -> str:
    """A part whose numbers are all 0 and 1, or 0 and minus infinity, and that is no row of features, is a mask."""
    if part.kind == "number":
        return "features"
    if part.kind not in ("image", "sequence", "features"):
        return part.kind
    known = part.columns
    added = bool((known.minus > 0).any()) and bool(((known.count == 0) | ((known.low == 0) & (known.high == 0))).all())
    binary = part.kind == "sequence" and bool(((known.low >= 0) & (known.high <= 1) & (known.whole > 0)).all())
    return "mask" if added or binary else part.kind


def scale(known: Any) -> dict[str, Any]:
    """How far the columns are from each other and from 0."""
    used = known.count >= 2
    if not bool(used.any()):
        return {}
    torch = sys.modules["torch"]
    deviations = known.deviations()
    moving = used & (deviations > 1e-9 * known.mean.abs().clamp_min(1e-30))
    size = torch.where(used, known.mean.abs() + 2 * deviations, -1.0)
    largest = int(size.argmax())
    found: dict[str, Any] = {
        "columns": int(used.sum()),
        "size": [largest, float(size[largest]), float(known.low[largest]), float(known.high[largest])],
    }
    if bool(moving.any()):
        widths = deviations[moving]
        places = moving.nonzero().reshape(-1)
        offsets = known.mean.abs()[moving] / widths
        widest, furthest = int(widths.argmax()), int(offsets.argmax())
        found["widest"] = [int(places[widest]), float(widths[widest])]
        found["middle"] = float(widths.median())
        place = int(places[furthest])
        found["offset"] = [place, float(offsets[furthest]), float(known.mean[place]), float(deviations[place])]
    return found


def _spread(kept: Any) -> dict[str, Any]:
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


def _odd(part: Part, spread: dict[str, Any] | None) -> list[int]:
    """Columns worth telling: all if they are few."""
    if part.width <= COLUMNS:
        return list(range(part.width))
    known = part.columns
    deviations = known.deviations()
    strange = known.nan + known.plus + known.minus
    order = strange.argsort(descending=True)[:12].tolist()
    order += deviations.argsort(descending=True)[:10].tolist()
    order += deviations.argsort()[:10].tolist()
    order += (known.mean.abs() / deviations.clamp_min(1e-12)).argsort(descending=True)[:4].tolist()
    if spread is not None:
        reach = (known.high - spread["q50"]).maximum(spread["q50"] - known.low)
        order += (reach / spread["mad"].clamp_min(1e-12)).argsort(descending=True)[:16].tolist()
    return sorted(dict.fromkeys(order))[:COLUMNS]


def _is_label(value: float, part: Part) -> bool:
    return value >= 0 or (value == -1 and 0.0 not in (part.labels or {}))


def _labels(gathered: Gathered, target: str | None) -> dict[str, Any] | None:
    part = gathered.parts.get(target) if target is not None else None
    if part is None or not part.labels or len(part.labels) < 2:
        return None
    _, ignored = gathered.targets.get(part.path, ("", None))
    counts = {value: count for value, count in part.labels.items() if value != ignored and _is_label(value, part)}
    if len(counts) < 2:
        return None
    whole = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    entropies, batches, samples = part.entropies
    shown = ordered if len(ordered) <= CLASSES else [*ordered[: CLASSES // 2], *ordered[-CLASSES // 2 :]]
    return {
        "classes": len(ordered),
        "floats": part.floats,
        "counts": [[value, count] for value, count in shown],
        "samples": whole,
        "entropy": -sum(count / whole * log(count / whole) for _, count in ordered),
        "batch_entropy": entropies / batches if batches else None,
        "batches": int(batches),
        "batch": samples / batches if batches else 0.0,
    }
