"""What was gathered of the data, as a record for the rules: each part with its role, and columns worth a look."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import log
from typing import Any

from ... import tensors
from ...records.data import LabelCounts, Link, LoaderData, PartRole, PartSeen, Relation, TextsSeen
from . import columns, own_tables, relation
from .part import Part
from .statistics import Gathered

MOST_COLUMNS = 48  # in a record; of more, the oddest
MOST_CLASSES = 64
MOST_SET = 0.002  # of the numbers of a sequence, that are not 0
COMPUTED = ("features", "image", "sequence")  # roles of what a model computes with
CODES = range(3, 101)  # distinct values that a column of codes may have
ROWS_A_CODE = 8
MOST_CODED = 64  # columns that are compared with the target


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
    links = _links(gathered, part, target) if role == "features" else {}
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


# --- how much a column of whole numbers says of the target: taken as a category, and taken as a number ---------------


def _links(gathered: Gathered, part: Part, path: str | None) -> dict[int, Link]:
    """By column of a part, how much it says of the target, which is at `path`."""
    torch = sys.modules["torch"]
    kept = gathered.kept.parts.get(part.path)
    target = gathered.kept.parts.get(path) if path is not None else None
    if path is None or kept is None or target is None or path == part.path or target.shape[1] != 1:
        return {}
    target = target[:, 0]
    classes = gathered.parts[path].labels
    labelled = classes is not None and 2 <= len(classes) <= MOST_CLASSES
    found: dict[int, Link] = {}
    for column in (part.columns.whole > 0).nonzero().reshape(-1).tolist()[:MOST_CODED]:
        values = kept[:, column]
        good = torch.isfinite(values) & torch.isfinite(target)
        x, y = values[good], target[good]
        codes, code = torch.unique(x, return_inverse=True)
        if codes.numel() not in CODES or x.numel() < ROWS_A_CODE * codes.numel():
            continue
        if labelled:
            known, label = torch.unique(y, return_inverse=True)
            if known.numel() < 2:
                continue
            category = cramer(code, label, int(codes.numel()), int(known.numel()))
            number = ratio(label, x, int(known.numel()))
        else:
            category, number = ratio(code, y, int(codes.numel())), correlation(x, y)
        found[column] = Link(as_category=category, as_number=number, codes=int(codes.numel()))
    return found


def cramer(one: Any, other: Any, ones: int, others: int) -> float:
    """Cramér's V of two categories, less what chance alone gives (Bergsma)."""
    torch = sys.modules["torch"]
    count = int(one.numel())
    table = torch.bincount(one * others + other, minlength=ones * others).double().reshape(ones, others)
    expected = table.sum(1, keepdim=True) * table.sum(0, keepdim=True) / count
    square = float(((table - expected) ** 2 / expected.clamp_min(1e-12)).sum()) / count
    square = max(0.0, square - (ones - 1) * (others - 1) / (count - 1))
    rows, columns = ones - (ones - 1) ** 2 / (count - 1), others - (others - 1) ** 2 / (count - 1)
    return float((square / max(1e-12, min(rows, columns) - 1)) ** 0.5)


def ratio(groups: Any, values: Any, count: int) -> float:
    """Correlation ratio: what share of the variance lies between groups, less what chance gives; its root."""
    torch = sys.modules["torch"]
    whole = int(values.numel())
    sizes = torch.bincount(groups, minlength=count).double()
    sums = torch.zeros(count, dtype=torch.float64, device="cpu").index_add_(0, groups, values.double())
    mean = values.double().mean()
    between = float((sizes * (sums / sizes.clamp_min(1) - mean) ** 2).sum())
    total = float(((values.double() - mean) ** 2).sum())
    if total <= 0 or whole <= count:
        return 0.0
    return float(max(0.0, 1 - (1 - between / total) * (whole - 1) / (whole - count)) ** 0.5)


def correlation(x: Any, y: Any) -> float:
    x, y = x.double() - x.double().mean(), y.double() - y.double().mean()
    spread = float((x * x).sum() * (y * y).sum())
    count = int(x.numel())
    if spread <= 0 or count <= 2:
        return 0.0
    square = float((x * y).sum()) ** 2 / spread
    return float(max(0.0, 1 - (1 - square) * (count - 1) / (count - 2)) ** 0.5)
