"""What a loss function was given: targets and predictions, over sampled batches, from what the graph keeps."""

from __future__ import annotations

import sys
from collections import deque
from math import log

from ... import flight, objects
from ... import gpu as late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

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


class Given:
    """Of one loss function, over all the batches that were read."""

    def __init__(self, op: str) -> None:
        self.op = op
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
        self.rows: list[float] = []
        """Lowest, highest and mean sum of a row of probabilities."""
        self.floor = 0.0
        self.negative = False
        self.beyond = {"relu": [0.0, 0.0], "sigmoid": [0.0, 0.0], "tanh": [0.0, 0.0]}
        """By activation: how many targets it cannot reach, and by how much, squared."""
        self.predicted: deque[tuple[int, Any]] = deque(maxlen=RECENT)
        """Training step, and how often each class was predicted."""
        self.spread: deque[tuple[float, float]] = deque(maxlen=RECENT)
        self.out_low, self.out_high = float("inf"), float("-inf")
        self.out_rows: list[float] = []

    def take(self, target: Any, prediction: Any, dim: int, ignore: int | None) -> None:
        if target is None or target.numel() == 0:
            return
        given = [tensor for tensor in (target, prediction) if tensor is not None]
        if not (all(late.near(tensor) for tensor in given) or all(late.away(tensor) for tensor in given)):
            return
        self.batches += 1
        self.dtype = str(target.dtype).removeprefix("torch.")
        self.shape = [int(size) for size in target.shape]
        strides = target.stride()
        if any(size > 1 and stride == 0 for size, stride in zip(self.shape, strides, strict=True)):
            self.expanded = [1 if stride == 0 else size for size, stride in zip(self.shape, strides, strict=True)]
        given = [_some(tensor.detach()) for tensor in given]
        if late.away(target):
            kept = 1 if self.op in CLASS_LOSSES else dim if self.op == "log_softmax" else -1
            given = [late.thinned(tensor, 4 * ELEMENTS, kept) if tensor.dim() > 1 else tensor for tensor in given]
            late.bring(given, lambda copies: self._take(copies, dim, ignore))
        else:
            self._take(given, dim, ignore)

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
        torch = sys.modules["torch"]
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
        self.predicted.append((flight.steps(), torch.bincount(prediction.argmax(axis).reshape(-1), minlength=width)))
        self._look_at_output(prediction)
        if self.batches <= ROWS_READ:
            self.out_rows = _stretched(self.out_rows, prediction.float().exp().sum(axis))

    def _take_rows(self, target: Any, prediction: Any, dim: int) -> None:
        """Cross entropy with probabilities: what the rows sum to, and below what no prediction can bring the loss."""
        torch = sys.modules["torch"]
        target = target.float()
        sums = target.sum(dim)
        self.rows = _stretched(self.rows, sums)
        self.negative = self.negative or bool((target < 0).any())
        self.low, self.high = min(self.low, float(target.min())), max(self.high, float(target.max()))
        others = [axis for axis in range(target.dim()) if axis != dim % target.dim()]
        count = int(sums.numel())
        self.classes = _plus(self.classes, target.sum(others) if others else target)
        shares = target / sums.unsqueeze(dim).clamp_min(1e-12)
        self.floor += float((sums * torch.special.entr(shares.clamp_min(0)).sum(dim)).sum())
        self.count += count
        if prediction is not None and prediction.shape == target.shape:
            counts = torch.bincount(prediction.argmax(dim).reshape(-1), minlength=target.shape[dim])
            self.predicted.append((flight.steps(), counts))
            self._look_at_output(prediction)

    def _take_numbers(self, target: Any, prediction: Any) -> None:
        torch = sys.modules["torch"]
        target = target.float()
        low, high = float(target.min()), float(target.max())
        if low - low != 0 or high - high != 0:
            return
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.count += int(target.numel())
        wide = target.dim() < 2 or target.shape[-1] > COLUMNS
        table = (target.reshape(-1, 1) if wide else target.reshape(-1, target.shape[-1])).double()
        if self.sums is not None and self.sums.shape != table.shape[1:]:
            self.sums, self.squares, self.entries = None, None, 0
        self.sums = _plus(self.sums, table.sum(0))
        self.squares = _plus(self.squares, (table * table).sum(0))
        self.entries += int(table.shape[0])
        if self.integer and bool((target != target.round()).any()):
            self.integer = False
        if self.integer and len(self.values) <= VALUES:
            self.values.update(torch.unique(target.reshape(-1)[:4096]).tolist()[: VALUES + 1])
        for name, reached in (("relu", (0.0, None)), ("sigmoid", (0.0, 1.0)), ("tanh", (-1.0, 1.0))):
            if low < reached[0] or (reached[1] is not None and high > reached[1]):
                missed = target - target.clamp(*reached)
                self.beyond[name][0] += int((missed != 0).sum())
                self.beyond[name][1] += float((missed * missed).sum())
        if prediction is not None and prediction.is_floating_point():
            self._look_at_output(prediction)
            if self.op in BINARY_LOSSES:
                above = int((prediction > (0.5 if self.op == "bce" else 0.0)).sum())
                self.predicted.append((flight.steps(), torch.tensor([int(prediction.numel()) - above, above])))

    def look_for_ids(self, target: Any, frame: FrameType | None) -> None:
        """Does the function that calls backward have the same as whole numbers (`y`, of which it took `y.float()`)?"""
        if not self.integer or target.numel() > ELEMENTS or frame is None:
            return
        if not target.is_floating_point():
            self.ids = "the target"
            return
        own = frame.f_code.co_flags & objects.FAST == objects.FAST
        names: list[str] = []
        found: list[Any] = []
        for name, value in (objects.locals_of(frame) if own else dict(frame.f_globals)).items():
            if type(value) is not sys.modules["torch"].Tensor or value.device != target.device:
                continue
            if value.numel() == target.numel() and self._is_whole(value) and len(found) < ALIKE:
                names.append(name)
                found.append(value)
        if found and late.away(target):
            late.bring([target, *found], lambda copies: self._compare(copies[0], names, copies[1:]))
        elif late.near(target):
            self._compare(target, names, found)

    def _compare(self, target: Any, names: list[str], found: list[Any]) -> None:
        if not self.integer or self.sums is None:
            return
        flat = target.reshape(-1)
        for name, value in zip(names, found, strict=True):
            if bool((value.reshape(-1) == flat).all()):
                self.ids = name
                return

    @staticmethod
    def _is_whole(value: Any) -> bool:
        torch = sys.modules["torch"]
        return value.dtype in (torch.int64, torch.int32, torch.uint8)

    def _look_at_output(self, prediction: Any) -> None:
        torch = sys.modules["torch"]
        prediction = prediction.float()
        low, high = float(prediction.min()), float(prediction.max())
        if low - low != 0 or high - high != 0:
            return
        self.out_low, self.out_high = min(self.out_low, low), max(self.out_high, high)
        deviation, mean = torch.std_mean(prediction, correction=0)
        self.spread.append((float(mean), float(deviation)))

    # --- telling -------------------------------------------------------------------------------------------------

    def target(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "batches": self.batches,
            "count": self.count,
            "dtype": self.dtype,
            "shape": self.shape,
            "expanded": self.expanded,
        }
        if self.low <= self.high:
            told["min"], told["max"] = self.low, self.high
        if self.sums is not None and self.entries:
            means = self.sums / self.entries
            variances = (self.squares / self.entries - means * means).clamp_min(0)
            whole = float(self.sums.sum()) / (self.entries * means.numel())
            square = float(self.squares.sum()) / (self.entries * means.numel())
            told["mean"], told["sd"] = whole, max(0.0, square - whole * whole) ** 0.5
            told["constant"] = self._constant(means, variances)
            told["integer"] = self.integer
            told["ids"] = self.ids
            if self.integer and self.values and len(self.values) <= VALUES:
                told["values"] = sorted(self.values)
            told["beyond"] = {
                name: {"share": missed / self.count, "floor": square / self.count}
                for name, (missed, square) in self.beyond.items()
            }
            if self.op in BINARY_LOSSES and means.numel() == 1:
                share = float(means[0])
                told["classes"], told["majority"], told["of"] = 2, max(share, 1 - share), int(share > 0.5)
        elif self.classes is not None:
            told.update(self._of_classes())
        if self.rows:
            told["rows"] = {"min": self.rows[0], "max": self.rows[1], "mean": self.rows[2] / max(1.0, self.rows[3])}
            told["negative"] = self.negative
            told["floor"] = self.floor / max(1, self.count)
        return told

    def prediction(self) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if self.spread:
            told["min"], told["max"] = self.out_low, self.out_high
            told["mean"] = sum(mean for mean, _ in self.spread) / len(self.spread)
            told["sd"] = sum(deviation for _, deviation in self.spread) / len(self.spread)
        late = [counts for step, counts in self.predicted if step >= flight.steps() // 2]
        if late and all(each.shape == late[0].shape for each in late):
            counts = sum(late)
            told["recent"], told["samples"] = len(late), int(counts.sum())
            told["top"], told["share"] = int(counts.argmax()), float(counts.max()) / max(1, int(counts.sum()))
        if self.out_rows:
            told["rows"] = {"min": self.out_rows[0], "max": self.out_rows[1]}
        return told

    def _constant(self, means: Any, variances: Any) -> float | None:
        """The loss of the best prediction that is the same for every sample."""
        if self.op in SQUARES:
            return float(variances.mean())
        if self.op in BINARY_LOSSES and self.low >= 0 and self.high <= 1:
            entr = sys.modules["torch"].special.entr
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


def _some(tensor: Any) -> Any:
    if tensor.numel() <= ELEMENTS or tensor.dim() == 0:
        return tensor
    return tensor[: max(1, int(tensor.shape[0]) * ELEMENTS // int(tensor.numel()))]


def _plus(held: Any, more: Any) -> Any:
    return more if held is None or held.shape != more.shape else held + more


def _stretched(held: list[float], sums: Any) -> list[float]:
    """Lowest, highest, sum and number."""
    low, high, whole, count = float(sums.min()), float(sums.max()), float(sums.sum()), int(sums.numel())
    if not held:
        return [low, high, whole, count]
    return [min(held[0], low), max(held[1], high), held[2] + whole, held[3] + count]
