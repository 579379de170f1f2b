"""What was gathered of the data, as a record for the rules: each part with its role, and columns worth a look."""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any

from ... import tensors
from ...records.data import LabelCounts, Link, LoaderData, PartRole, PartSeen, Relation, TextsSeen
from . import codes, columns, own_tables, relation, summary
from .part import Part
from .statistics import Gathered

MOST_COLUMNS = 48  # in a record; of more, the oddest
MOST_CLASSES = 64
MOST_SET = 0.002  # of the numbers of a sequence, that are not 0
COMPUTED = ("features", "image", "sequence")  # roles of what a model computes with


def filled(about: LoaderData, gathered: Gathered, trains: bool) -> LoaderData:
    """A loader's record with what is in its data."""
    target = _target(gathered)
    targets = [path for path in (*gathered.targets, target) if path is not None and path not in gathered.used]
    known: dict[str, PartRole] = dict.fromkeys(_others(gathered, target), "other")
    known.update(dict.fromkeys(targets, "target"))
    inputs = [part for path, part in gathered.parts.items() if path not in known]
    if len(inputs) == 1 and inputs[0].kind == "sequence" and _is_zero(inputs[0]):
        known[inputs[0].path] = "sequence"  # no mask: there is nothing that it could mask
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
        pairs=gathered.pairs.record(),
        relation=_relation(gathered, target, known, about.samples),
    )


def _relation(gathered: Gathered, target: str | None, roles: dict[str, PartRole], total: int | None) -> Relation | None:
    """Where rows of features, pictures or sequences are all that the model gets."""
    pair, kept = _only_input(gathered, target, roles), gathered.kept
    if pair is None or target is None or kept.keys.numel() < relation.MIN_ROWS:
        return None
    part, table = pair
    classes = is_classes(gathered.parts[target])
    if part.per_sample is None:
        return relation.relation(table, kept.parts[target], kept.samples, classes, total)
    if total is None or not gathered.named:
        return None  # the same ones may have come several times, augmented in other ways
    return relation.relation(table[:, 2:], kept.parts[target], kept.samples, classes, total, coarse=True)


def reordered(about: LoaderData, gathered: Gathered, own: own_tables.OwnTables) -> LoaderData:
    """The same for what a script holds and draws its batches from itself, where it has no loader."""
    target = about.target
    pair = _only_input(gathered, target, {part.path: part.role for part in about.parts if part.role not in COMPUTED})
    if pair is None or target is None:
        return about
    answers = gathered.parts[target], gathered.kept.parts[target]
    return replace(about, relation=own.relation(pair, answers, is_classes(answers[0])) or about.relation)


def is_classes(target: Part) -> bool:
    return target.labels is not None and 2 <= len(target.labels) <= relation.MAX_CLASSES


def _only_input(gathered: Gathered, target: str | None, roles: dict[str, PartRole]) -> tuple[Part, Any] | None:
    """With the rows that were kept of it; its target has one number a sample."""
    kept = gathered.kept.parts
    inputs = [part for path, part in gathered.parts.items() if path not in roles]
    if target not in kept or len(inputs) != 1 or inputs[0].path not in kept or _role(inputs[0]) not in COMPUTED:
        return None
    return (inputs[0], kept[inputs[0].path]) if kept[target].shape[1] == 1 else None


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
    spreads = columns.spreads(kept if part.per_sample is None else kept[:, :2]) if kept is not None else {}
    of_columns = spreads if part.per_sample is None else {}
    links = _links(gathered, part, target) if role in ("features", "sequence") else {}
    known = [
        part.columns.stats(column, part.place(column), columns.spread(of_columns, column), links.get(column))
        for column in _odd(part, of_columns)
    ]
    per_sample = part.per_sample if kept is not None else None
    return replace(
        about,
        width=part.whole_width,
        columns=known,
        scale=columns.scale(part.columns),
        bad_rows=part.columns.bad_rows,
        bad_samples=part.columns.bad_samples,
        means=None if per_sample is None else per_sample.stats(0, 0, columns.spread(spreads, 0)),
        deviations=None if per_sample is None else per_sample.stats(1, 1, columns.spread(spreads, 1)),
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


def _is_zero(part: Part) -> bool:
    """But for a few numbers."""
    return float((part.columns.rows - part.columns.zeros).sum()) <= MOST_SET * float(part.columns.rows.sum())


def _odd(part: Part, spreads: dict[str, Any]) -> list[int]:
    """Columns worth telling: all if they are few."""
    if part.width <= MOST_COLUMNS:
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
    return sorted(dict.fromkeys(order))[:MOST_COLUMNS]


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
    shown = ordered if len(ordered) <= MOST_CLASSES else [*ordered[: MOST_CLASSES // 2], *ordered[-MOST_CLASSES // 2 :]]
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


def _links(gathered: Gathered, part: Part, path: str | None) -> dict[int, Link]:
    """By column of a part, how much it says of the target, which is at `path`."""
    kept = gathered.kept.parts.get(part.path)
    target = gathered.kept.parts.get(path) if path is not None else None
    if path is None or kept is None or target is None or path == part.path or target.shape[1] != 1:
        return {}
    labels = gathered.parts[path].labels
    labelled = labels is not None and 2 <= len(labels) <= MOST_CLASSES
    table = kept.unsqueeze(1) if part.per_sample is None else summary.values(kept[:, 2:], part.whole_width)
    return {} if table is None else codes.links(table, target, labelled)
