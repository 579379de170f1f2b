"""How much a column of whole numbers says of the target: taken as a category, and taken as a number."""

from __future__ import annotations

import sys

from ...records.data import Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .part import Part
    from .statistics import Gathered

CODES = (3, 100)
"""Distinct values a column of codes may have."""
ROWS_A_CODE = 8
CLASSES = 64
MOST = 64
"""Columns that are looked at."""


def links(gathered: Gathered, part: Part, path: str | None) -> dict[int, Link]:
    """By column of a part, how much it says of the target, which is at `path`."""
    torch = sys.modules["torch"]
    kept = gathered.kept.parts.get(part.path)
    target = gathered.kept.parts.get(path) if path is not None else None
    if path is None or kept is None or target is None or path == part.path or target.shape[1] != 1:
        return {}
    target = target[:, 0]
    classes = gathered.parts[path].labels
    labelled = classes is not None and 2 <= len(classes) <= CLASSES
    found: dict[int, Link] = {}
    for column in (part.columns.whole > 0).nonzero().reshape(-1).tolist()[:MOST]:
        values = kept[:, column]
        good = torch.isfinite(values) & torch.isfinite(target)
        x, y = values[good], target[good]
        codes, code = torch.unique(x, return_inverse=True)
        if not CODES[0] <= codes.numel() <= CODES[1] or x.numel() < ROWS_A_CODE * codes.numel():
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
