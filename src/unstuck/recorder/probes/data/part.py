"""One tensor of a batch, over all batches read: what kind it is by its shape, its columns, its labels."""

from __future__ import annotations

import sys
from math import log
from typing import Any

from ...records.data import PartKind
from . import bounded_rows, columns, summary

WIDE = 512  # columns of a part that are looked at; of more, some spread over it
MOST_LABELS = 1000  # distinct ones
CHANNELS = (1, 3, 4, 2)  # by how likely a dimension of that size is the channels


class Part:
    """One tensor of the batch, over all batches read."""

    def __init__(self, path: str, tensor: Any) -> None:
        self.path = path
        self.dtype = str(tensor.dtype).removeprefix("torch.")
        self.shape = [int(size) for size in tensor.shape[1:]]
        self.floats = bool(tensor.is_floating_point())
        self.kind = kind_of(tensor)
        self.rows = 0
        self.ragged = False
        self.whole_width = self.width = _width(tensor, self.kind)
        self.chosen: Any = None
        if self.width > WIDE:
            torch = sys.modules["torch"]
            self.chosen = torch.arange(WIDE, device="cpu") * self.width // WIDE
            self.width = WIDE
        self.columns = columns.Columns(self.width)
        self.per_sample = columns.Columns(2) if self.kind in ("image", "sequence") else None
        """Of images and sequences: mean and standard deviation of each sample."""
        self.summary = summary.Summary()
        self.labels: dict[float, int] | None = {} if self.kind in ("label", "number") else None
        self.entropies = [0.0, 0.0, 0.0]
        """Of the labels within a batch: their sum, how many batches, and samples in all of these."""

    def take(self, tensor: Any, rows: bounded_rows.Rows) -> Any:
        """Read one batch of it; gives the rows to choose from, one a sample, or None."""
        self.rows += rows.read
        self.ragged = self.ragged or [int(size) for size in tensor.shape[1:]] != self.shape
        if self.kind in ("label", "number"):
            flat = rows.of(tensor.reshape(-1))
            self._count(flat)
            if self.kind == "number":
                self.columns.take(flat.unsqueeze(1), rows.named)
            return flat.unsqueeze(1)
        if self.kind in ("features", "image", "sequence"):
            laid = laid_out(tensor, self.kind)
            return self._take_table(laid, rows) if laid.shape[-1] == self.whole_width else None
        return None

    def _take_table(self, laid: Any, rows: bounded_rows.Rows) -> Any:
        """Samples, pixels or moments as rows, channels or features as columns."""
        torch = sys.modules["torch"]
        step, thin = rows.step(self.width), laid
        if self.per_sample is not None:
            share = int(laid.shape[0]) * self.whole_width / (rows.read * self.width)
            thin = bounded_rows.thinned(laid, int(bounded_rows.PIECE * share))
        table, named = rows.of(thin, step, self.chosen).double(), rows.named[::step]
        places = int(table[0].numel()) // self.width
        self.columns.take(table.reshape(-1, self.width), named.repeat_interleave(places))
        good = torch.isfinite(table).flatten(1).all(1)
        part_only = thin is not laid or step > 1 or rows.index is not None
        if part_only and self.floats and rows.search and bool(good.any()):
            self._take_hidden(laid, rows, {rows.places[at * step] for at in (~good).nonzero().reshape(-1).tolist()})
        if self.per_sample is None:
            return table if step == 1 else None
        deviation, mean = torch.std_mean(table.flatten(1), dim=1, correction=0)
        moments = torch.stack((mean, deviation), 1)
        self.per_sample.take(moments[good], named[good])
        return torch.cat((moments, self.summary.of(laid, rows)), 1) if step == 1 else None

    def _take_hidden(self, laid: Any, rows: bounded_rows.Rows, shown: set[int]) -> None:
        torch = sys.modules["torch"]
        for place, table in bounded_rows.hidden(laid, rows, shown):
            table = table if self.chosen is None else table[:, self.chosen]
            if not bool(torch.isfinite(table).all()):
                named = torch.full((table.shape[0],), rows.named_at(place), dtype=torch.int64, device="cpu")
                self.columns.take(table, named)

    def _count(self, flat: Any) -> None:
        if self.labels is None:
            return
        torch = sys.modules["torch"]
        values, counts = torch.unique(flat.double() if self.floats else flat, return_counts=True)
        if values.numel() > MOST_LABELS or (self.floats and bool((values != values.round()).any())):
            self.labels = None
            return
        found = self._labelled(dict(zip(map(float, values.tolist()), counts.tolist(), strict=True)))
        size = sum(found.values())
        self.add_entropy(-sum(count / size * log(count / size) for count in found.values()), size)
        self._add_labels(found)

    def _add_labels(self, counts: dict[float, int] | None) -> None:
        if self.labels is None or counts is None or len(self.labels.keys() | counts.keys()) > MOST_LABELS:
            self.labels = None
            return
        for value, count in counts.items():
            self.labels[value] = self.labels.get(value, 0) + count

    def _labelled(self, found: dict[float, int]) -> dict[float, int]:
        """Without what says that there is no label: below -1, and -1 where classes are counted from 0."""
        from_zero = 0.0 in found or (self.labels is not None and 0.0 in self.labels)
        return {value: count for value, count in found.items() if value >= (0 if from_zero else -1)}

    def add_entropy(self, entropy: float, size: int) -> None:
        if size > 1:
            self.entropies = [self.entropies[0] + entropy, self.entropies[1] + 1, self.entropies[2] + size]

    def place(self, column: int) -> int:
        """Which column of all this one of the chosen is."""
        return column if self.chosen is None else int(self.chosen[column])

    def merge(self, other: Part) -> None:
        self.rows += other.rows
        self.ragged = self.ragged or other.ragged or other.shape != self.shape
        if other.width == self.width:
            self.columns.merge(other.columns)
        if self.per_sample is not None and other.per_sample is not None:
            self.per_sample.merge(other.per_sample)
        self._add_labels(other.labels)
        self.entropies = [mine + theirs for mine, theirs in zip(self.entropies, other.entropies, strict=True)]


def kind_of(tensor: Any) -> PartKind:
    """By type and shape alone."""
    torch = sys.modules["torch"]
    dims = int(tensor.dim())
    if tensor.dtype is torch.bool:
        return "mask"
    flat = dims == 1 or (dims == 2 and tensor.shape[1] == 1)
    if not tensor.is_floating_point():
        pixels = tensor.dtype is torch.uint8 and dims >= 3
        return "image" if pixels else "label" if flat else "tokens"
    if flat:
        return "number"
    return "features" if dims == 2 else "sequence" if dims == 3 else "image"


def channel_dim(tensor: Any, kind: PartKind) -> int:
    if kind == "sequence" or tensor.dim() < 3:
        return -1
    dims = range(1, int(tensor.dim()))
    for count in CHANNELS:
        found = [dim for dim in dims if tensor.shape[dim] == count]
        if found:
            return found[0]
    return 1


def laid_out(tensor: Any, kind: PartKind) -> Any:
    """Samples first, channels or features last."""
    if kind == "image" and tensor.dim() == 3:  # grey, without a dimension for it
        return tensor.unsqueeze(-1)
    return tensor.movedim(channel_dim(tensor, kind), -1)


def _width(tensor: Any, kind: PartKind) -> int:
    return int(laid_out(tensor, kind).shape[-1]) if kind in ("features", "sequence", "image") else 1
