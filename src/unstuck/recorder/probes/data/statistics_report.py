"""What was gathered of the data, as a record for the rules: each part with its role, and columns worth a look."""

from __future__ import annotations

from dataclasses import replace
from math import log

from ... import tensors
from ...records.data import LabelCounts, LoaderData, PartSeen, TextsSeen
from . import associations, summaries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...records.data import PartRole
    from .part import Part
    from .statistics import Gathered

COLUMNS = 48
"""Columns that are told one by one; of more, the oddest."""
CLASSES = 64
COMPUTED = ("features", "image", "sequence")
"""Roles of what a model computes with."""


def filled(about: LoaderData, gathered: Gathered, trains: bool) -> LoaderData:
    """A loader's record with what is in its data."""
    target = _target(gathered)
    targets = [path for path in (*gathered.targets, target) if path is not None and path not in gathered.used]
    known: dict[str, PartRole] = dict.fromkeys(_others(gathered, target), "other")
    known.update(dict.fromkeys(targets, "target"))
    op, ignored = gathered.targets.get(target or "", (None, None))
    return replace(
        about,
        trains=trains,
        rows=gathered.rows,
        batches=gathered.batches,
        parts=[_part(gathered, part, known.get(path) or _role(part), target) for path, part in gathered.parts.items()],
        texts=[
            TextsSeen(path=path, lines=texts.lines, empty=texts.empty, samples=texts.samples)
            for path, texts in gathered.texts.items()
        ],
        target=target,
        target_op=op or "",
        labels=_labels(gathered, target, ignored),
    )


def _target(gathered: Gathered) -> str | None:
    """What the loss got, if something else is left for the model; else where targets are by custom."""
    numeric = [path for path, part in gathered.parts.items() if part.kind != "mask"]
    if gathered.targets:
        return next(iter(gathered.targets)) if len(numeric) > 1 else None
    return tensors.target_among(list(gathered.parts)) if gathered.has_target else None


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


def _part(gathered: Gathered, part: Part, role: PartRole, target: str | None) -> PartSeen:
    about = PartSeen(
        path=part.path, role=role, dtype=part.dtype, shape=part.shape, rows=part.rows, ragged=part.ragged
    )  # fmt: skip
    if role not in COMPUTED:
        return about
    kept = gathered.kept.parts.get(part.path)
    spreads = summaries.spreads(kept) if kept is not None else {}
    of_columns = spreads if part.each is None else {}
    links = associations.links(gathered, part, target) if role == "features" else {}
    known = [
        part.columns.stats(column, part.place(column), summaries.spread(of_columns, column), links.get(column))
        for column in _odd(part, of_columns)
    ]
    each = part.each if kept is not None else None
    return replace(
        about,
        width=part.whole_width,
        columns=known,
        scale=summaries.scale(part.columns),
        bad_rows=part.columns.bad_rows,
        bad_samples=part.columns.bad_samples,
        means=None if each is None else each.stats(0, 0, summaries.spread(spreads, 0)),
        deviations=None if each is None else each.stats(1, 1, summaries.spread(spreads, 1)),
    )


def _role(part: Part) -> PartRole:
    """A part whose numbers are all 0 and 1, or 0 and minus infinity, and that is no row of features, is a mask."""
    if part.kind == "number":
        return "features"
    if part.kind not in ("image", "sequence", "features"):
        return part.kind
    known = part.columns
    added = bool((known.minus > 0).any()) and bool(((known.count == 0) | ((known.low == 0) & (known.high == 0))).all())
    binary = part.kind == "sequence" and bool(((known.low >= 0) & (known.high <= 1) & (known.whole > 0)).all())
    return "mask" if added or binary else part.kind


def _odd(part: Part, spreads: dict[str, Any]) -> list[int]:
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
    if spreads:
        reach = (known.high - spreads["q50"]).maximum(spreads["q50"] - known.low)
        order += (reach / spreads["mad"].clamp_min(1e-12)).argsort(descending=True)[:16].tolist()
    return sorted(dict.fromkeys(order))[:COLUMNS]


def _is_label(value: float, part: Part) -> bool:
    return value >= 0 or (value == -1 and 0.0 not in (part.labels or {}))


def _labels(gathered: Gathered, target: str | None, ignored: float | None) -> LabelCounts | None:
    part = gathered.parts.get(target) if target is not None else None
    if part is None or not part.labels or len(part.labels) < 2:
        return None
    counts = {value: count for value, count in part.labels.items() if value != ignored and _is_label(value, part)}
    if len(counts) < 2:
        return None
    whole = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    entropies, batches, samples = part.entropies
    shown = ordered if len(ordered) <= CLASSES else [*ordered[: CLASSES // 2], *ordered[-CLASSES // 2 :]]
    return LabelCounts(
        classes=len(ordered),
        floats=part.floats,
        counts=shown,
        samples=whole,
        entropy=-sum(count / whole * log(count / whole) for _, count in ordered),
        batch_entropy=entropies / batches if batches else None,
        batches=int(batches),
        batch=samples / batches if batches else 0.0,
    )
