"""Whether inputs say anything about their targets: two simple tests on the rows that were kept, and whether the targets
would fit in another order of the samples."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from ...records.data import PairedWith, Relation

MIN_ROWS = 200  # that are compared; fewer prove nothing
MIN_PAIRS = 100  # of these, in another order: that must be very clear
MAX_REORDERED = 1 << 16  # samples of a dataset whose targets are tried in other orders
MAX_NEAR = 512  # rows among which the nearest is looked for
MAX_COLUMNS = 64  # of more, some spread over all of them
ROWS_A_COLUMN = 4  # rows needed for each column and class, or chance alone looks like a relation
MAX_CLASSES = 20


def relation(
    inputs: Any, targets: Any, samples: Any, classes: bool, total: int | None, coarse: bool = False
) -> Relation | None:
    """Of rows of features with one target each; `samples`: their numbers in the dataset, which has `total` of them.
    `coarse`: the rows are what `summary` makes of pictures or sequences."""
    torch = sys.modules["torch"]
    good = torch.isfinite(inputs).all(1) & torch.isfinite(targets).all(1) & _first_of_its_kind(inputs)
    table, target, numbers = inputs[good], targets[good].reshape(-1), samples[good]
    groups = groups_of(target, classes)
    if groups is None:
        return None
    most = int(table.shape[0]) // (ROWS_A_COLUMN * int(groups.shape[1])) if coarse else MAX_COLUMNS
    white = whitened(_scaled(table) if coarse else table[:, :: -(-int(table.shape[1]) // MAX_COLUMNS)], most)
    if int(table.shape[0]) < max(MIN_ROWS, ROWS_A_COLUMN * int(white.shape[1] * groups.shape[1])):
        return None
    found = Relation(
        rows=int(table.shape[0]),
        coarse=coarse,
        by_mean=_by_mean(white, groups),
        by_neighbour=_by_neighbour(table, target, classes),
    )
    if total is None or not MIN_ROWS <= total <= MAX_REORDERED:
        return found
    row_of = torch.full((total + 1,), -1, dtype=torch.int64, device="cpu")
    row_of[numbers.clamp(0, total)] = torch.arange(numbers.numel(), device="cpu")
    row_of[total] = -1
    fit, name = max((_in_order(white, groups, row_of, order), name) for name, order in _orders(total).items())
    return replace(found, paired=name, by_mean_paired=fit)


def _first_of_its_kind(table: Any) -> Any:
    """Without rows that are there already: where samples have no numbers, one may have been kept in several epochs."""
    torch = sys.modules["torch"]
    mixed = table @ torch.linspace(1.0, 2.0, int(table.shape[1]), dtype=table.dtype, device="cpu").cos()
    ordered, order = mixed.sort(stable=True)
    new = torch.ones_like(ordered, dtype=torch.bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return torch.zeros_like(new).scatter_(0, order, new)


def _in_order(white: Any, groups: Any, row_of: Any, order: list[int]) -> float:
    """The first test, with the target of another sample for each."""
    torch = sys.modules["torch"]
    inputs, targets = row_of[:-1], row_of[torch.tensor(order, device="cpu")]
    both = (inputs >= 0) & (targets >= 0)
    return _by_mean(white[inputs[both]], groups[targets[both]]) if int(both.sum()) >= MIN_PAIRS else 0.0


def whitened(table: Any, most: int = MAX_COLUMNS) -> Any:
    """Columns without a mean, all of one size and none a mixture of the others: those along which rows differ most."""
    torch = sys.modules["torch"]
    centered = table - table.mean(0)
    sizes, axes = torch.linalg.eigh(centered.T @ centered / max(1, int(table.shape[0])))
    kept = sizes > 1e-9 * sizes[-1].clamp_min(1e-30)
    return (centered @ axes[:, kept] / sizes[kept].sqrt())[:, -most:]


def _scaled(table: Any) -> Any:
    return (table - table.mean(0)) / table.std(0).clamp_min(1e-12)


def groups_of(target: Any, classes: bool) -> Any:
    """A column for each class but one, or the target itself: none has a mean, all have the size 1."""
    torch = sys.modules["torch"]
    if target.numel() < 2:
        return None
    if classes:
        known, label = torch.unique(target, return_inverse=True)
        if not 2 <= known.numel() <= MAX_CLASSES:
            return None
        return whitened(torch.nn.functional.one_hot(label).double()[:, 1:])
    return whitened(target.double().unsqueeze(1)) if float(target.std()) > 0 else None


def _by_mean(white: Any, groups: Any) -> float:
    """How far the shared variance is above what chance gives, in standard deviations of chance."""
    shared, degrees = common(white, groups)
    return float((shared - degrees) / (2 * degrees) ** 0.5)


def common(white: Any, groups: Any) -> tuple[float, int]:
    """How much two tables share that are whitened, and what chance alone would give."""
    return float((white.T @ groups).square().sum()) / int(white.shape[0]), int(white.shape[1]) * int(groups.shape[1])


def _by_neighbour(table: Any, target: Any, classes: bool) -> float:
    """The same for how often, or how much, a row's target is that of the row most like it."""
    torch = sys.modules["torch"]
    thin = slice(None, None, -(-int(table.shape[0]) // MAX_NEAR))
    table, target = table[thin], target[thin]
    scaled = _scaled(table)
    distances = torch.cdist(scaled, scaled).fill_diagonal_(torch.inf)
    return agreement(target, target[distances.argmin(1)], classes)


def agreement(target: Any, other: Any, classes: bool) -> float:
    """Of two targets for each row: standard deviations above what chance gives."""
    torch, count = sys.modules["torch"], int(target.numel())
    if not classes:
        rows = torch.stack((target, other)).double()
        return float(torch.corrcoef(rows)[0, 1].nan_to_num()) * float(count**0.5)
    shares = torch.unique(target, return_counts=True)[1].double() / count
    chance = float(shares.square().sum())
    agree = float((target == other).double().mean())
    return (agree - chance) * float((count / max(1e-12, chance * (1 - chance))) ** 0.5)


def _orders(total: int) -> dict[PairedWith, list[int]]:
    """Of which sample the target may be instead: mistakes that people make. The number after the last one is none."""
    as_text = sorted(range(total), key=str)
    return {
        "next": list(range(1, total + 1)),
        "previous": [total, *range(total - 1)],
        "reversed": list(range(total - 1, -1, -1)),
        "as text": as_text,
        "text as numbers": sorted(range(total), key=as_text.__getitem__),
    }
