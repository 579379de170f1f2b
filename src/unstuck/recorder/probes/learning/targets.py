"""What a loss function gets: targets and predictions, over sampled batches, from what the graph keeps."""

from __future__ import annotations

from collections import deque
from math import isfinite, log
from types import FrameType
from typing import Any

import torch

from ... import flight, gpu
from ...records.learning import LossOp, OutOfReach, Predictions, Range, Targets
from .script_lines import names_in

MAX_ELEMENTS = 1 << 15  # of a larger tensor only some samples are looked at
MAX_CLASSES = 2048
MAX_COLUMNS = 1024
MAX_VALUES = 64  # distinct values of an integer-valued target that are told apart
MAX_COMPARED = 8  # tensors of whole numbers that are compared with the target
RECENT_BATCHES = 16
ROWS_READ = 12  # batches in which the sums of rows of predictions are taken
CLASS_LOSSES = ("cross_entropy", "nll")
SQUARES = ("mse", "squared")
BINARY_LOSSES = ("bce", "bce_logits")
REACHES = {"relu": (0.0, None), "sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0)}  # what activations can give: from, to
ROUNDING = 1e-3  # of a target, which may be known by what the loss made of it


class Extent:
    """Lowest, highest and mean value, over all batches."""

    def __init__(self) -> None:
        self.low, self.high, self._sum, self._count = float("inf"), float("-inf"), 0.0, 0

    def take(self, values: Any, *, finite: bool = False) -> bool:
        """False: they are not taken, for they are to be `finite` and are not."""
        low, high = float(values.min()), float(values.max())
        if finite and not (isfinite(low) and isfinite(high)):
            return False
        self.low, self.high = min(self.low, low), max(self.high, high)
        return True

    def take_sums(self, sums: Any) -> None:
        self.take(sums)
        self._sum += float(sums.sum())
        self._count += int(sums.numel())

    def ends(self) -> dict[str, float]:
        return {"min": self.low, "max": self.high} if self.low <= self.high else {}

    def record(self) -> Range | None:
        return Range(min=self.low, max=self.high, mean=self._sum / self._count) if self._count else None


class Mixing:
    """How much targets vary within a batch, compared with all of them: sorted data comes in batches of its own kind."""

    def __init__(self) -> None:
        self._within = self._sizes = 0.0
        self._batches = 0

    def take_classes(self, counts: Any) -> None:
        size = float(counts.sum())
        if size > 1:
            self._take(1 - float(((counts / size) ** 2).sum()), size)

    def take_numbers(self, values: Any) -> None:
        if values.numel() > 1:
            self._take(float(values.double().var(correction=0)), float(values.numel()))

    def _take(self, variance: float, size: float) -> None:
        self._within += variance * size / (size - 1)
        self._sizes += size
        self._batches += 1

    def record(self, overall: float) -> dict[str, Any]:
        """`overall`: the variance of all targets; of classes, how likely two of them differ."""
        if not self._batches or overall <= 0:
            return {}
        count = self._batches
        return {"mixed": self._within / count / overall, "mixed_batches": count, "mixed_size": self._sizes / count}


class PredictionStats:
    """What the model predicted, over the last batches that were read."""

    def __init__(self) -> None:
        self._extent, self.rows = Extent(), Extent()
        self.width = 0  # numbers in such a row
        self._spreads: deque[tuple[float, float]] = deque(maxlen=RECENT_BATCHES)
        self._counts: deque[tuple[int, Any]] = deque(maxlen=RECENT_BATCHES)
        """Training step, and how often each class was predicted."""

    def take(self, prediction: Any, counts: Any = None) -> None:
        """`counts`: how often each class was predicted."""
        if counts is not None:
            self._counts.append((flight.steps(), counts))
        prediction = prediction.float()
        if self._extent.take(prediction, finite=True):
            deviation, mean = torch.std_mean(prediction, correction=0)
            self._spreads.append((float(mean), float(deviation)))

    def record(self) -> Predictions:
        fields: dict[str, Any] = {"rows": self.rows.record(), "width": self.width, **self._extent.ends()}
        if self._spreads:
            fields["mean"] = sum(mean for mean, _ in self._spreads) / len(self._spreads)
            fields["sd"] = sum(deviation for _, deviation in self._spreads) / len(self._spreads)
        late = [counts for step, counts in self._counts if step >= flight.steps() // 2]
        if late and all(counts.shape == late[0].shape for counts in late):
            total: Any = sum(late)
            samples = int(total.sum())
            fields.update(recent=len(late), samples=samples, top=int(total.argmax()))
            fields["share"] = float(total.max()) / max(1, samples)
        return Predictions(**fields)


class TargetStats:
    """Of one loss function, over all the batches that were read."""

    def __init__(self, op: LossOp, copies: gpu.Copies, scaled: str = "") -> None:
        """`scaled`: the bounded activation, if predictions are what it gave times other numbers."""
        self.op, self._copies = op, copies
        self._bounds = REACHES["tanh" if scaled == "tanh" else "sigmoid"]
        self.batches = self.count = 0
        self.dtype = ""
        self.shape: list[int] = []
        self.expanded: list[int] = []
        self.predictions = PredictionStats()
        self._mixing = Mixing()
        self._extent, self._rows = Extent(), Extent()
        # Of numbers, by column.
        self._sums: Any = None
        self._squares: Any = None
        self._entries = 0
        self._integer = True
        self._values: set[float] = set()
        self._ids: str | None = None
        """Name of a tensor of whole numbers in the training that holds the same as the target."""
        self._beyond = {name: [0.0, 0.0] for name in REACHES}
        """By activation: how many targets it cannot reach, and by how much, squared."""
        # Of classes and probabilities.
        self._classes: Any = None
        self._floor = 0.0
        self._negative = False

    def take(
        self, target: Any, prediction: Any = None, dim: int = 1, ignored: int | None = None, factor: Any = None
    ) -> None:
        """`dim`: of the classes, where targets are probabilities; `ignored`: the class to ignore; `factor`: with which
        the prediction was multiplied."""
        if target is None or target.numel() == 0:
            return
        factor = factor if prediction is not None and target.shape == prediction.shape else None
        both = [tensor for tensor in (target, prediction, factor) if tensor is not None]
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
            kept = 1 if self.op in CLASS_LOSSES else dim if self.op == "log_softmax" else -1
            both = [gpu.thinned(tensor, 4 * MAX_ELEMENTS, kept) if tensor.dim() > 1 else tensor for tensor in both]
            self._copies.bring(both, lambda copies: self._take(dim, ignored, *copies))
        else:
            self._take(dim, ignored, *both)

    def take_log_probabilities(self, prediction: Any) -> None:
        """Of classes in the last dimension, where the targets are sequences."""
        if prediction is None or prediction.numel() == 0 or self.batches >= ROWS_READ:
            return
        self.batches += 1
        some = _some(prediction.detach())
        if gpu.away(prediction):
            self._copies.bring([gpu.thinned(some, 4 * MAX_ELEMENTS, -1)], lambda copies: self._take_sums(copies[0]))
        elif gpu.near(prediction):
            self._take_sums(some)

    def _take_sums(self, prediction: Any) -> None:
        self.predictions.width = int(prediction.shape[-1])
        self.predictions.rows.take_sums(prediction.float().exp().sum(-1))

    def _take(self, dim: int, ignored: int | None, target: Any, prediction: Any = None, factor: Any = None) -> None:
        if self.op in CLASS_LOSSES:
            self._take_classes(target, prediction, ignored)
        elif self.op == "log_softmax":
            if target.is_floating_point():
                self._take_rows(target, prediction, dim)
        elif not target.is_complex():
            self._take_numbers(target, prediction)
            if factor is not None:
                self._take_scaled(target.float(), factor.float())

    def _take_classes(self, target: Any, prediction: Any, ignored: int | None) -> None:
        if target.is_floating_point() or prediction is None:
            return
        axis = 1 if prediction.dim() > 1 else 0
        width = int(prediction.shape[axis])
        labels = target.reshape(-1)
        if ignored is not None:
            labels = labels[labels != ignored]
        self.count += int(labels.numel())
        if width > MAX_CLASSES or labels.numel() == 0 or int(labels.min()) < 0:
            return
        counts = torch.bincount(labels, minlength=width)
        self._classes = _plus(self._classes, counts)
        self._mixing.take_classes(counts)
        self.predictions.take(prediction, torch.bincount(prediction.argmax(axis).reshape(-1), minlength=width))
        if self.batches <= ROWS_READ:
            self.predictions.rows.take_sums(prediction.float().exp().sum(axis))

    def _take_rows(self, target: Any, prediction: Any, dim: int) -> None:
        """Cross entropy with probabilities: what the rows sum to, and below what no prediction can bring the loss."""
        target = target.float()
        sums = target.sum(dim)
        self._rows.take_sums(sums)
        self._extent.take(target)
        self._negative = self._negative or bool((target < 0).any())
        others = [axis for axis in range(target.dim()) if axis != dim % target.dim()]
        self._classes = _plus(self._classes, target.sum(others) if others else target)
        shares = target / sums.unsqueeze(dim).clamp_min(1e-12)
        self._floor += float((sums * torch.special.entr(shares.clamp_min(0)).sum(dim)).sum())
        self.count += int(sums.numel())
        if prediction is not None and prediction.shape == target.shape:
            counts = torch.bincount(prediction.argmax(dim).reshape(-1), minlength=target.shape[dim])
            self.predictions.take(prediction, counts)

    def _take_numbers(self, target: Any, prediction: Any) -> None:
        target = target.float()
        if not self._extent.take(target, finite=True):
            return
        self.count += int(target.numel())
        self._take_columns(target)
        if target.dim() == 1 or (target.dim() == 2 and target.shape[1] == 1):
            self._mixing.take_numbers(target)
        if self._integer and bool((target != target.round()).any()):
            self._integer = False
        if self._integer and len(self._values) <= MAX_VALUES:
            self._values.update(torch.unique(target.reshape(-1)[:4096]).tolist()[: MAX_VALUES + 1])
        for name, (least, most) in REACHES.items():
            if self._extent.low < least or (most is not None and self._extent.high > most):
                missed = target - target.clamp(least, most)
                self._beyond[name][0] += int((missed != 0).sum())
                self._beyond[name][1] += float((missed * missed).sum())
        if prediction is not None and prediction.is_floating_point():
            counts = None
            if self.op in BINARY_LOSSES:
                above = int((prediction > (0.5 if self.op == "bce" else 0.0)).sum())
                counts = torch.tensor([int(prediction.numel()) - above, above])
            self.predictions.take(prediction, counts)

    def _take_scaled(self, target: Any, factor: Any) -> None:
        """How far the factor times the activation comes, one by one."""
        ends = [factor * bound for bound in self._bounds]
        missed = target - target.clamp(torch.minimum(*ends), torch.maximum(*ends))
        beyond = self._beyond.setdefault("scaled", [0.0, 0.0])
        beyond[0] += int((missed.abs() > ROUNDING * (1 + target.abs())).sum())
        beyond[1] += float((missed * missed).sum())

    def _take_columns(self, target: Any) -> None:
        flat = target.dim() < 2 or target.shape[-1] > MAX_COLUMNS
        table = (target.reshape(-1, 1) if flat else target.reshape(-1, target.shape[-1])).double()
        if self._sums is not None and self._sums.shape != table.shape[1:]:
            self._sums, self._squares, self._entries = None, None, 0
        self._sums = _plus(self._sums, table.sum(0))
        self._squares = _plus(self._squares, (table * table).sum(0))
        self._entries += int(table.shape[0])

    def look_for_ids(self, target: Any, frame: FrameType | None) -> None:
        """Does the function that calls backward have the same as whole numbers (`y`, of which it took `y.float()`)?"""
        if not self._integer or target.numel() > MAX_ELEMENTS or frame is None:
            return
        if not target.is_floating_point():
            self._ids = "the target"
            return
        alike = {name: value for name, value in names_in(frame).items() if _could_be(value, target)}
        names, values = list(alike)[:MAX_COMPARED], list(alike.values())[:MAX_COMPARED]
        if names and gpu.away(target):
            self._copies.bring([target, *values], lambda copies: self._compare(copies[0], names, copies[1:]))
        elif gpu.near(target):
            self._compare(target, names, values)

    def _compare(self, target: Any, names: list[str], values: list[Any]) -> None:
        if self._integer and self._sums is not None:
            flat = target.reshape(-1)
            same = (n for n, value in zip(names, values, strict=True) if bool((value.reshape(-1) == flat).all()))
            self._ids = next(same, None)

    # --- telling -----------------------------------------------------------------------------------------------------

    def record(self) -> Targets:
        fields: dict[str, Any] = self._extent.ends()
        if self._sums is not None and self._entries:
            fields.update(self._of_numbers())
        elif self._classes is not None:
            fields.update(self._of_classes())
        rows = self._rows.record()
        if rows is not None:
            fields.update(rows=rows, negative=self._negative, floor=self._floor / max(1, self.count))
        return Targets(
            batches=self.batches, count=self.count, dtype=self.dtype, shape=self.shape, expanded=self.expanded, **fields
        )

    def _of_numbers(self) -> dict[str, Any]:
        means = self._sums / self._entries
        variances = (self._squares / self._entries - means * means).clamp_min(0)
        mean, square = (float(whole.sum()) / (self._entries * means.numel()) for whole in (self._sums, self._squares))
        fields: dict[str, Any] = {
            "mean": mean,
            "sd": max(0.0, square - mean * mean) ** 0.5,
            "constant": self._constant(means, variances),
            **self._mixing.record(float(variances.mean())),
            "integer": self._integer,
            "ids": self._ids,
            "beyond": {
                name: OutOfReach(share=missed / self.count, floor=squares / self.count)
                for name, (missed, squares) in self._beyond.items()
            },
        }
        if self._integer and self._values and len(self._values) <= MAX_VALUES:
            fields["values"] = sorted(self._values)
        if self.op in BINARY_LOSSES and means.numel() == 1:
            share = float(means[0])
            fields.update(classes=2, majority=max(share, 1 - share), of=int(share > 0.5))
        return fields

    def _constant(self, means: Any, variances: Any) -> float | None:
        """The loss of the best prediction that is the same for every sample."""
        if self.op in SQUARES:
            return float(variances.mean())
        if self.op in BINARY_LOSSES and self._extent.low >= 0 and self._extent.high <= 1:
            entr = torch.special.entr
            return float((entr(means) + entr(1 - means)).mean())
        return None

    def _of_classes(self) -> dict[str, Any]:
        counts = [float(count) for count in self._classes.tolist()]
        total = sum(counts)
        present = [count for count in counts if count > 0]
        if total <= 0 or len(present) != len([count for count in counts if count]):
            return {}
        entropy = -sum(count / total * log(count / total) for count in present)
        scale = total / self.count if self.op == "log_softmax" and self.count else 1.0
        return {
            "classes": len(present),
            "majority": max(present) / total,
            "minority": min(present) / total,
            "of": counts.index(max(counts)),
            "constant": entropy * scale,
            **self._mixing.record(1 - sum((count / total) ** 2 for count in present)),
        }


def _could_be(value: Any, target: Any) -> bool:
    """As many whole numbers, on the same device."""
    if type(value) is not torch.Tensor or value.device != target.device:
        return False
    return value.numel() == target.numel() and value.dtype in (torch.int64, torch.int32, torch.uint8)


def _some(tensor: Any) -> Any:
    if tensor.numel() <= MAX_ELEMENTS or tensor.dim() == 0:
        return tensor
    return tensor[: max(1, int(tensor.shape[0]) * MAX_ELEMENTS // int(tensor.numel()))]


def _plus(held: Any, more: Any) -> Any:
    return more if held is None or held.shape != more.shape else held + more
