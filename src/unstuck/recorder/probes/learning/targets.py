"""What a loss function was given: targets and predictions, over sampled batches, from what the graph keeps."""

from __future__ import annotations

from collections import deque
from math import log
from types import FrameType
from typing import Any

import torch

from ... import flight, gpu
from ...records.learning import LossOp, OutOfReach, Predictions, Range, Targets
from . import sites
from .loss_head import Given

ELEMENTS = 1 << 15
"""Of a larger tensor only some samples are looked at."""
CLASSES = 2048
COLUMNS = 1024
VALUES = 64
"""Distinct values of an integer-valued target that are told apart."""
RECENT = 16
ALIKE = 8
"""Tensors of whole numbers that are compared with the target."""
ROWS_READ = 12
CLASS_LOSSES = ("cross_entropy", "nll")
SQUARES = ("mse", "squared")
BINARY_LOSSES = ("bce", "bce_logits")
REACHED = (("relu", 0.0, None), ("sigmoid", 0.0, 1.0), ("tanh", -1.0, 1.0))
"""What activations can give: from, to."""


class Sums:
    """Lowest, highest and mean sum of a row, over all batches."""

    def __init__(self) -> None:
        self.low, self.high, self.whole, self.count = float("inf"), float("-inf"), 0.0, 0

    def take(self, sums: Any) -> None:
        self.low, self.high = min(self.low, float(sums.min())), max(self.high, float(sums.max()))
        self.whole += float(sums.sum())
        self.count += int(sums.numel())

    def record(self) -> Range | None:
        return Range(min=self.low, max=self.high, mean=self.whole / self.count) if self.count else None


class Output:
    """What the model predicted, over the last batches that were read."""

    def __init__(self) -> None:
        self.low, self.high = float("inf"), float("-inf")
        self._spread: deque[tuple[float, float]] = deque(maxlen=RECENT)
        self._counts: deque[tuple[int, Any]] = deque(maxlen=RECENT)
        """Training step, and how often each class was predicted."""
        self.rows = Sums()

    def take(self, prediction: Any, counts: Any = None) -> None:
        """`counts`: how often each class was predicted."""
        if counts is not None:
            self._counts.append((flight.steps(), counts))
        prediction = prediction.float()
        low, high = float(prediction.min()), float(prediction.max())
        if low - low != 0 or high - high != 0:
            return
        self.low, self.high = min(self.low, low), max(self.high, high)
        deviation, mean = torch.std_mean(prediction, correction=0)
        self._spread.append((float(mean), float(deviation)))

    def record(self) -> Predictions:
        about: dict[str, Any] = {"rows": self.rows.record()}
        if self._spread:
            about.update(min=self.low, max=self.high)
            about["mean"] = sum(mean for mean, _ in self._spread) / len(self._spread)
            about["sd"] = sum(deviation for _, deviation in self._spread) / len(self._spread)
        late = [counts for step, counts in self._counts if step >= flight.steps() // 2]
        if late and all(each.shape == late[0].shape for each in late):
            counts: Any = sum(late)
            samples = int(counts.sum())
            about.update(recent=len(late), samples=samples, top=int(counts.argmax()))
            about["share"] = float(counts.max()) / max(1, samples)
        return Predictions(**about)


class TargetStats:
    """Of one loss function, over all the batches that were read."""

    def __init__(self, op: LossOp, copies: gpu.Copies) -> None:
        self.op, self._copies = op, copies
        self.batches = self.count = 0
        self.dtype = ""
        self.shape: list[int] = []
        self.expanded: list[int] = []
        self.low, self.high = float("inf"), float("-inf")
        self.sums: Any = None
        self.squares: Any = None
        self.entries = 0
        self.integer = True
        self.ids: str | None = None
        """Name of a tensor of whole numbers in the training that holds the same as the target."""
        self.values: set[float] = set()
        self.classes: Any = None
        self.rows = Sums()
        self.floor = 0.0
        self.negative = False
        self.beyond = {name: [0.0, 0.0] for name, _, _ in REACHED}
        """By activation: how many targets it cannot reach, and by how much, squared."""
        self.output = Output()

    def take(self, given: Given) -> None:
        target = given.target
        if target is None or target.numel() == 0:
            return
        both = [tensor for tensor in (target, given.prediction) if tensor is not None]
        if not (all(gpu.near(tensor) for tensor in both) or all(gpu.away(tensor) for tensor in both)):
            return
        self.batches += 1
        self.dtype = str(target.dtype).removeprefix("torch.")
        self.shape = [int(size) for size in target.shape]
        strides = target.stride()
        if any(size > 1 and stride == 0 for size, stride in zip(self.shape, strides, strict=True)):
            self.expanded = [1 if stride == 0 else size for size, stride in zip(self.shape, strides, strict=True)]
        both = [_some(tensor.detach()) for tensor in both]
        if gpu.away(target):
            kept = 1 if self.op in CLASS_LOSSES else given.dim if self.op == "log_softmax" else -1
            both = [gpu.thinned(tensor, 4 * ELEMENTS, kept) if tensor.dim() > 1 else tensor for tensor in both]
            self._copies.bring(both, lambda copies: self._take(copies, given.dim, given.ignored))
        else:
            self._take(both, given.dim, given.ignored)

    def _take(self, given: list[Any], dim: int, ignore: int | None) -> None:
        target, prediction = given if len(given) > 1 else (given[0], None)
        if self.op in CLASS_LOSSES:
            self._take_classes(target, prediction, ignore)
        elif self.op == "log_softmax":
            if target.is_floating_point():
                self._take_rows(target, prediction, dim)
        elif not target.is_complex():
            self._take_numbers(target, prediction)

    def _take_classes(self, target: Any, prediction: Any, ignore: int | None) -> None:
        if target.is_floating_point() or prediction is None:
            return
        axis = 1 if prediction.dim() > 1 else 0
        width = int(prediction.shape[axis])
        kept = target.reshape(-1)
        if ignore is not None:
            kept = kept[kept != ignore]
        self.count += int(kept.numel())
        if width > CLASSES or kept.numel() == 0 or int(kept.min()) < 0:
            return
        self.classes = _plus(self.classes, torch.bincount(kept, minlength=width))
        self.output.take(prediction, torch.bincount(prediction.argmax(axis).reshape(-1), minlength=width))
        if self.batches <= ROWS_READ:
            self.output.rows.take(prediction.float().exp().sum(axis))

    def _take_rows(self, target: Any, prediction: Any, dim: int) -> None:
        """Cross entropy with probabilities: what the rows sum to, and below what no prediction can bring the loss."""
        target = target.float()
        sums = target.sum(dim)
        self.rows.take(sums)
        self.negative = self.negative or bool((target < 0).any())
        self.low, self.high = min(self.low, float(target.min())), max(self.high, float(target.max()))
        others = [axis for axis in range(target.dim()) if axis != dim % target.dim()]
        self.classes = _plus(self.classes, target.sum(others) if others else target)
        shares = target / sums.unsqueeze(dim).clamp_min(1e-12)
        self.floor += float((sums * torch.special.entr(shares.clamp_min(0)).sum(dim)).sum())
        self.count += int(sums.numel())
        if prediction is not None and prediction.shape == target.shape:
            counts = torch.bincount(prediction.argmax(dim).reshape(-1), minlength=target.shape[dim])
            self.output.take(prediction, counts)

    def _take_numbers(self, target: Any, prediction: Any) -> None:
        target = target.float()
        low, high = float(target.min()), float(target.max())
        if low - low != 0 or high - high != 0:
            return
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.count += int(target.numel())
        self._add_columns(target)
        if self.integer and bool((target != target.round()).any()):
            self.integer = False
        if self.integer and len(self.values) <= VALUES:
            self.values.update(torch.unique(target.reshape(-1)[:4096]).tolist()[: VALUES + 1])
        for name, least, most in REACHED:
            if low < least or (most is not None and high > most):
                missed = target - target.clamp(least, most)
                self.beyond[name][0] += int((missed != 0).sum())
                self.beyond[name][1] += float((missed * missed).sum())
        if prediction is not None and prediction.is_floating_point():
            counts = None
            if self.op in BINARY_LOSSES:
                above = int((prediction > (0.5 if self.op == "bce" else 0.0)).sum())
                counts = torch.tensor([int(prediction.numel()) - above, above])
            self.output.take(prediction, counts)

    def _add_columns(self, target: Any) -> None:
        wide = target.dim() < 2 or target.shape[-1] > COLUMNS
        table = (target.reshape(-1, 1) if wide else target.reshape(-1, target.shape[-1])).double()
        if self.sums is not None and self.sums.shape != table.shape[1:]:
            self.sums, self.squares, self.entries = None, None, 0
        self.sums = _plus(self.sums, table.sum(0))
        self.squares = _plus(self.squares, (table * table).sum(0))
        self.entries += int(table.shape[0])

    def look_for_ids(self, target: Any, frame: FrameType | None) -> None:
        """Does the function that calls backward have the same as whole numbers (`y`, of which it took `y.float()`)?"""
        if not self.integer or target.numel() > ELEMENTS or frame is None:
            return
        if not target.is_floating_point():
            self.ids = "the target"
            return
        found = {name: value for name, value in sites.names(frame).items() if _is_like(value, target)}
        names, values = list(found)[:ALIKE], list(found.values())[:ALIKE]
        if found and gpu.away(target):
            self._copies.bring([target, *values], lambda copies: self._compare(copies[0], names, copies[1:]))
        elif gpu.near(target):
            self._compare(target, names, values)

    def _compare(self, target: Any, names: list[str], found: list[Any]) -> None:
        if not self.integer or self.sums is None:
            return
        flat = target.reshape(-1)
        self.ids = next(
            (n for n, value in zip(names, found, strict=True) if bool((value.reshape(-1) == flat).all())), None
        )

    # --- telling -------------------------------------------------------------------------------------------------

    def record(self) -> Targets:
        about: dict[str, Any] = {}
        if self.low <= self.high:
            about.update(min=self.low, max=self.high)
        if self.sums is not None and self.entries:
            about.update(self._of_numbers())
        elif self.classes is not None:
            about.update(self._of_classes())
        if self.rows.count:
            about.update(rows=self.rows.record(), negative=self.negative, floor=self.floor / max(1, self.count))
        return Targets(
            batches=self.batches, count=self.count, dtype=self.dtype, shape=self.shape, expanded=self.expanded, **about
        )

    def _of_numbers(self) -> dict[str, Any]:
        means = self.sums / self.entries
        variances = (self.squares / self.entries - means * means).clamp_min(0)
        mean, square = (float(whole.sum()) / (self.entries * means.numel()) for whole in (self.sums, self.squares))
        about: dict[str, Any] = {
            "mean": mean,
            "sd": max(0.0, square - mean * mean) ** 0.5,
            "constant": self._constant(means, variances),
            "integer": self.integer,
            "ids": self.ids,
            "beyond": {
                name: OutOfReach(share=missed / self.count, floor=squares / self.count)
                for name, (missed, squares) in self.beyond.items()
            },
        }
        if self.integer and self.values and len(self.values) <= VALUES:
            about["values"] = sorted(self.values)
        if self.op in BINARY_LOSSES and means.numel() == 1:
            share = float(means[0])
            about.update(classes=2, majority=max(share, 1 - share), of=int(share > 0.5))
        return about

    def _constant(self, means: Any, variances: Any) -> float | None:
        """The loss of the best prediction that is the same for every sample."""
        if self.op in SQUARES:
            return float(variances.mean())
        if self.op in BINARY_LOSSES and self.low >= 0 and self.high <= 1:
            entr = torch.special.entr
            return float((entr(means) + entr(1 - means)).mean())
        return None

    def _of_classes(self) -> dict[str, Any]:
        counts = [float(each) for each in self.classes.tolist()]
        whole = sum(counts)
        present = [each for each in counts if each > 0]
        if whole <= 0 or len(present) != len([each for each in counts if each]):
            return {}
        entropy = -sum(each / whole * log(each / whole) for each in present)
        scale = whole / self.count if self.op == "log_softmax" and self.count else 1.0
        return {
            "classes": len(present),
            "majority": max(present) / whole,
            "minority": min(present) / whole,
            "of": counts.index(max(counts)),
            "constant": entropy * scale,
        }


def _is_like(value: Any, target: Any) -> bool:
    """As many whole numbers, at the same place."""
    if type(value) is not torch.Tensor or value.device != target.device:
        return False
    return value.numel() == target.numel() and value.dtype in (torch.int64, torch.int32, torch.uint8)


def _some(tensor: Any) -> Any:
    if tensor.numel() <= ELEMENTS or tensor.dim() == 0:
        return tensor
    return tensor[: max(1, int(tensor.shape[0]) * ELEMENTS // int(tensor.numel()))]


def _plus(held: Any, more: Any) -> Any:
    return more if held is None or held.shape != more.shape else held + more
