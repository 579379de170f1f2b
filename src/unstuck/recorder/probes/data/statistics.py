"""What is in the data, part by part of a batch or sample: gathered the same way while training and in a scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import tensors as batch_parts
from ...records.learning import LossOp
from . import bounded_rows, columns
from .pairs import Pairs
from .part import Part, kind_of

MOST_PARTS = 12  # of a batch
TARGET = ".target"  # path of a target that is no part of the batch: only the loss gets it


class Texts:
    """One list of texts of the batch, over all batches read."""

    def __init__(self) -> None:
        self.lines = self.empty = 0
        self.samples: list[int] = []

    def add(self, lines: int, empty: int, samples: list[int]) -> None:
        self.lines += lines
        self.empty += empty
        self.samples = (self.samples + samples)[: columns.BAD_ROWS]


class Gathered:
    """Everything read so far."""

    def __init__(self, whole: bool = False, has_target: bool = True) -> None:
        self.whole = whole  # every row is read, not only some of each batch
        self.has_target = has_target  # by custom the target is a part of the batch
        self.parts: dict[str, Part] = {}
        self.texts: dict[str, Texts] = {}
        self.kept = bounded_rows.KeptRows()
        self.pairs = Pairs()
        self.rows = self.batches = 0
        self.named = True  # the indices of all rows are known
        self.targets: dict[str, tuple[LossOp | None, float | None]] = {}
        """By path, of what a loss was given as its target, where that was seen: its function, and what it ignores."""
        self.used: set[str] = set()  # paths of what a layer was given as it came
        self._open: tuple[bounded_rows.Rows, dict[str, Any]] | None = None
        """A batch whose target is to come: its rows, and those to choose from, by part."""

    def take(self, batch: Any, samples: Sequence[int] | None, *, single: bool = False, open_: bool = False) -> None:
        """`samples`: the indices of its rows, where they are known; `single`: it is one sample, not a batch; `open_`:
        its target may come later."""
        found = list(batch_parts.parts(batch))[:MOST_PARTS]
        texts = [(path, part) for path, part in found if type(part) in (list, tuple)]
        tensors = [(path, part) for path, part in found if type(part) not in (list, tuple)]
        if single:
            tensors = [(path, tensor.unsqueeze(0)) for path, tensor in tensors]
        tensors = [(path, each.detach()) for path, each in tensors if batch_parts.readable(each) and each.dim()]
        rows = len(samples) if samples is not None else _rows(tensors, texts)
        if rows:
            self.take_parts(tensors, texts, samples, rows, open_=open_)

    def take_parts(
        self,
        tensors: list[tuple[str, Any]],
        texts: list[tuple[str, Sequence[str]]],
        samples: Sequence[int] | None,
        rows: int,
        *,
        open_: bool = False,
    ) -> None:
        self.close()
        read = bounded_rows.Rows(rows, samples, first=self.rows, turn=self.batches, whole=self.whole)
        self.rows += read.read
        self.batches += 1
        self.named = self.named and read.known
        self._open = read, {}
        for path, tensor in tensors:
            self._take_part(path, tensor, rows)
        for path, lines in texts:
            chosen = [lines[place] for place in read.places] if len(lines) == rows else lines[: bounded_rows.ROWS]
            self._take_texts(path, chosen[: bounded_rows.ROWS], read.numbers if read.known else ())
        if not open_:
            self.close()

    def _take_part(self, path: str, tensor: Any, rows: int) -> None:
        if self._open is None or tensor.shape[0] != rows or not tensor.numel():
            return
        read, chosen = self._open
        part = self.parts.get(path)
        if part is None:
            part = self.parts[path] = Part(path, tensor)
        if part.kind != kind_of(tensor) or (part.kind == "features" and part.whole_width != tensor.shape[1]):
            part.ragged = True
            return
        given = part.take(tensor, read)
        if given is not None and given.shape[0] == read.read:
            chosen[path] = given

    def take_target(self, target: Any, op: LossOp | None, ignored: float | None) -> None:
        """What a loss was given for the batch that came last, of which it is no part."""
        if self._open is not None and batch_parts.readable(target) and target.dim():
            self.targets.setdefault(TARGET, (op, ignored))
            self._take_part(TARGET, target.detach(), self._open[0].count)
            self.close()

    def close(self) -> None:
        """All there is of the last batch has come."""
        if self._open is not None and self._open[1]:
            self.kept.take(self._open[0].ids, self._open[1])
            self._take_pairs(self._open[1])
        self._open = None

    def _take_pairs(self, chosen: dict[str, Any]) -> None:
        target = chosen.get(next(iter(self.targets), ""))
        inputs = [rows for path, rows in chosen.items() if path not in self.targets and self.parts[path].floats]
        if target is not None and inputs and target.shape[1] == 1:
            self.pairs.take(max(inputs, key=lambda rows: int(rows.shape[1])), target)

    def take_ragged(self, path: str, tensors: list[Any], samples: list[int]) -> None:
        """One part of several samples, each with a shape of its own."""
        part = self.parts.get(path)
        if part is None:
            part = self.parts[path] = Part(path, tensors[0].unsqueeze(0))
        for tensor, sample in zip(tensors, samples, strict=True):
            if part.kind in ("image", "sequence") and kind_of(tensor.unsqueeze(0)) == part.kind and tensor.numel():
                part.take(tensor.unsqueeze(0), bounded_rows.Rows(1, [sample], whole=self.whole))
        part.ragged = True

    def _take_texts(self, path: str, lines: Sequence[str], samples: Sequence[int]) -> None:
        empty = [place for place, line in enumerate(lines) if type(line) is str and (not line or line.isspace())]
        named = [samples[place] for place in empty] if len(samples) == len(lines) else []
        self.texts.setdefault(path, Texts()).add(len(lines), len(empty), named)

    def merge(self, other: Gathered) -> None:
        self.rows += other.rows
        self.batches += other.batches
        for path, part in other.parts.items():
            mine = self.parts.get(path)
            if mine is None:
                self.parts[path] = part
            elif mine.kind == part.kind:
                mine.merge(part)
        self.kept.merge(other.kept)
        for path, texts in other.texts.items():
            self.texts.setdefault(path, Texts()).add(texts.lines, texts.empty, texts.samples)


def _rows(tensors: list[tuple[str, Any]], texts: list[tuple[str, Any]]) -> int:
    """As many samples as most parts have."""
    sizes = [int(each.shape[0]) for _, each in tensors] or [len(part) for _, part in texts]
    return max(set(sizes), key=sizes.count) if sizes else 0
