"""A loss that is NaN or Inf: which operation, data or update it comes from, in words, with the fix."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from unstuck import text
from unstuck.model import Case, Severity
from unstuck.recorder.records import Site
from unstuck.recorder.records.learning import Learning, Loss
from unstuck.recorder.records.numerics import (
    BadRows,
    BadTensor,
    Birth,
    ComputedValue,
    GrownWeight,
    Operation,
    Scaler,
    Why,
)

MIN_GROWTH = 10.0  # times that a weight's norm grew between two readings: no healthy step does that
MIN_BAD_LOSSES = 16  # by then it shows whether the parameters are NaN, or single batches only
MAX_OVERFLOWS = 5  # losses that a GradScaler may see overflow until it has found its scale
MIN_SKIPPED_IN_ROW = 12  # steps that a GradScaler skips; a handful is how it finds its scale
MIN_SCALE_FALL = 16.0  # times that a scale below 1 is smaller than at the start
PRODUCTS = ("addmm", "mm", "linear", "convolution")  # with weights: nothing that goes into these is a mask
OVERFLOWS = ("exp-overflow", "power", "root-overflow")  # what weights that have grown too large lead to

MODEL_INPUTS = ("mat1", "input")  # roles of what a layer is given: there NaN is in the data

Kind = Literal["input", "labels", "operation", "growth", "gradient", "unknown"]


class BadData(NamedTuple):
    """Data that came with NaN or Inf in it."""

    tensor: BadTensor
    name: str
    """As the training calls it; empty where that is not known."""
    whole: BadTensor | None
    """The data it was taken from, where that is at hand."""
    samples: list[int]
    """Indices in the dataset of the bad rows, where the batch came from a loader and was not cut."""


@dataclass(frozen=True)
class Cause:
    """Why one loss became NaN."""

    kind: Kind
    birth: Birth
    loss: Loss | None
    part: Operation | BadData | GrownWeight | None = None
    """What decides; None: the parameters were NaN before this loss, or nothing is known."""
    line: Site | None = None
    """Of what decides."""

    @property
    def site(self) -> Site | None:
        """That line; else the one that calls backward."""
        return self.line or self.birth.site

    @property
    def severity(self) -> Severity:
        """An error where most losses after it are NaN too: then the parameters are."""
        if self.loss is None or self.kind in ("growth", "gradient"):
            return "error"
        return "error" if self.loss.nonfinite >= self.loss.count - self.birth.before else "warning"

    @property
    def value(self) -> str:
        return "NaN" if math.isnan(self.birth.value) else "Inf"

    def toll(self) -> str:
        """How many losses are NaN."""
        if self.loss is None:
            return ""
        bad, whole = self.loss.nonfinite, self.loss.nonfinite + self.loss.count
        before = f" (the one before it was {self.birth.last:.4g})" if self.birth.before else ""
        verb, what = "is" if bad == 1 else "are", "NaN" if self.value == "NaN" else "Inf or NaN"
        return f"{bad:,} of {whole:,} losses {verb} {what}; the first at step {self.birth.step:,}{before}"


def nan_causes(learning: Learning, case: Case) -> Iterator[Cause]:
    """The cause of every loss that became NaN, once it shows what that does to the run."""
    for birth in learning.births:
        loss = next((loss for loss in learning.losses if loss.site == birth.site), None)
        if loss is not None and loss_scale(learning) is not None and loss.nonfinite <= MAX_OVERFLOWS and loss.count:
            continue
        cause = _cause(birth, loss)
        no_way_back = cause.kind in ("growth", "gradient")
        if no_way_back or loss is None or loss.nonfinite >= MIN_BAD_LOSSES or case.outcome != "running":
            yield cause


def loss_scale(learning: Learning) -> float | None:
    """Of its GradScaler; None: it uses none."""
    return learning.scaler.scale if learning.scaler is not None else None


def has_collapsed(scaler: Scaler) -> bool:
    """Its scale fell below 1, or still falls at every step."""
    if scaler.scale is None or not scaler.first:
        return False
    fallen = scaler.scale < 1 and scaler.scale * MIN_SCALE_FALL < scaler.first
    return fallen or scaler.skipped_in_row >= MIN_SKIPPED_IN_ROW


def samples_of(birth: Birth, bad: BadRows, size: int) -> list[int]:
    """Indices in the dataset of the bad rows of a tensor with `size` rows; none if its rows are not the batch's."""
    for batch in birth.batch:
        if batch.indices and batch.size == size:
            return [batch.indices[row] for row in bad.rows if row < len(batch.indices)]
    return []


def listed(numbers: list[int], of: int = 0) -> str:
    """411, 733 and 5 more"""
    return text.listed([f"{number:,}" for number in numbers], of, shown=len(numbers))


# --- what decides, the surest first --------------------------------------------------------------------------


def _cause(birth: Birth, loss: Loss | None) -> Cause:
    culprit = next((operation for operation in birth.operations if operation.made), None)
    if culprit is not None and culprit.why == "labels-ignored":
        return Cause("labels", birth, loss, culprit, culprit.site)
    if culprit is not None and culprit.backward:
        return Cause("operation", birth, loss, culprit, culprit.site)
    if birth.broken_parameters:
        return Cause("gradient", birth, loss)
    outside = _first_beyond_masks(birth.outside)
    if outside is not None and (culprit is None or outside.order <= culprit.order):
        return _from_outside(birth, loss, outside)
    if culprit is None:
        return _from_the_rest(birth, loss)
    grown = _grown_weight(birth) if culprit.why in OVERFLOWS else None
    if grown is not None:
        return Cause("growth", birth, loss, grown, culprit.site)
    return Cause("operation", birth, loss, culprit, culprit.site)


def _from_outside(birth: Birth, loss: Loss | None, tensor: BadTensor) -> Cause:
    """A tensor without a graph was NaN before the first operation on it."""
    computed = birth.computed
    if computed is not None and (computed.warned or not tensor.shape) and tensor.role not in MODEL_INPUTS:
        return _by_script(birth, loss, tensor, computed, tensor.name)
    if not tensor.shape:
        what = "NaN" if tensor.nan else "Inf"
        scalar = _operation_on(tensor, tensor.operation, "number-given", what, tensor.site)
        return Cause("operation", birth, loss, scalar, tensor.site)
    given_so = tensor.operation in PRODUCTS and any(made.plain for made in _computed(birth, tensor))
    grown = _grown_weight(birth) if tensor.bad_rows >= tensor.shape[0] and not given_so else None
    return Cause("growth", birth, loss, grown) if grown is not None else _from_data(birth, loss, tensor)


def _computed(birth: Birth, tensor: BadTensor) -> list[ComputedValue]:
    """How the script made such a tensor without a graph, as far as that was seen."""
    name = _name(tensor, birth.inputs)
    found = [other.computed for other in birth.inputs if other.name == name]
    return [made for made in (*found, birth.computed) if made is not None]


def _from_the_rest(birth: Birth, loss: Loss | None) -> Cause:
    """Neither an operation nor its data was seen to do it: what weights, the script's tensors and results say."""
    oldest = birth.operations[0] if birth.operations else None
    line = oldest.site if oldest is not None else None
    if (grown := _grown_weight(birth)) is not None:
        return Cause("growth", birth, loss, grown, line)
    if (data := _first_beyond_masks(birth.inputs)) is not None:
        return _from_data(birth, loss, data)
    half = next((operation for operation in birth.operations if operation.dtype == "torch.float16"), None)
    if half is not None:
        return Cause("operation", birth, loss, replace(half, why="half-precision", example=""), half.site)
    return Cause("unknown", birth, loss, oldest, line)


def _from_data(birth: Birth, loss: Loss | None, tensor: BadTensor) -> Cause:
    """Data that came so; or what the script computed from finite values, without a graph."""
    name, shape, line = _name(tensor, birth.inputs), tensor.shape, tensor.site
    for computed in _computed(birth, tensor):
        if not (computed.warned and tensor.role in MODEL_INPUTS):
            return _by_script(birth, loss, tensor, computed, name)
    larger = (other for other in birth.inputs if other.shape[1:] == shape[1:] and other.shape[:1] > shape[:1])
    data = BadData(tensor, name, next(larger, None), samples_of(birth, tensor, shape[0]))
    if not name and data.whole is None and not data.samples and tensor.role not in ("target", "mat1", "input"):
        return Cause("unknown", birth, loss, None, line)
    return Cause("input", birth, loss, data, tensor.site)


def _by_script(birth: Birth, loss: Loss | None, tensor: BadTensor, computed: ComputedValue, name: str) -> Cause:
    done = _operation_on(tensor, computed.operation, computed.why, computed.detail or name, computed.site)
    done = replace(done, example=computed.example)
    return Cause("operation", birth, loss, done, computed.site)


def _first_beyond_masks(tensors: list[BadTensor]) -> BadTensor | None:
    """The first that holds more than the -inf of a mask, or that a layer multiplies with its weights."""
    return next((tensor for tensor in tensors if not tensor.negative_inf_only or tensor.operation in PRODUCTS), None)


def _name(tensor: BadTensor, inputs: list[BadTensor]) -> str:
    """What the training calls it: the same memory, or else the same rows."""
    alike = [other for other in inputs if other.shape == tensor.shape]
    same = [other for other in alike if other.address == tensor.address]
    same = same or [other for other in alike if other.rows == tensor.rows]
    return same[0].name if same else tensor.name


def _operation_on(tensor: BadTensor, operation: str, why: Why, detail: str, site: Site | None) -> Operation:
    """An operation outside of the graph, with the bad elements of the tensor that shows it."""
    return Operation(
        operation=operation,
        why=why,
        detail=detail,
        site=site,
        count=tensor.count,
        of=tensor.of,
        rows=tensor.rows,
        bad_rows=tensor.bad_rows,
    )


def _grown_weight(birth: Birth) -> GrownWeight | None:
    """The weight matrix that grew most since it was last read, if that is far."""
    return next((weight for weight in birth.weights if weight.now > MIN_GROWTH * weight.before > 0), None)


# --- in words ------------------------------------------------------------------------------------------------

GENERAL_FIX = (
    "Run the script once with `torch.autograd.set_detect_anomaly(True)`: it stops in the operation whose gradient is "
    "NaN."
)
_LOG = (
    "Use `log_softmax`/`logsigmoid` of the scores instead of the log of a probability, or `.clamp_min(1e-8)` before "
    "the log."
)
_EDGE = "Keep the argument away from the edge: `sqrt(x + 1e-8)`, `clamp(-1 + 1e-6, 1 - 1e-6)`."
_ROOT = "Clamp the argument: `sqrt(x.clamp_min(1e-8))`."
REASONS: dict[Why, tuple[str, str]] = {
    "log-of-zero": ("{operation} of {zero}", _LOG),
    "log-of-negative": ("{operation} of a negative number", _LOG),
    "log-of-negative-data": (
        "{operation} of a negative number",
        "Take the log of positive values only: leave such a column as it is, or use `x.sign() * torch.log1p(x.abs())`.",
    ),
    "beyond-one": (
        "{operation} of a number {beyond} ±1",
        "Keep the argument away from the edge: `clamp(-1 + 1e-6, 1 - 1e-6)`; where it is a tanh of the script's own, "
        "store what went into the tanh.",
    ),
    "division-by-zero": ("division by 0", "Add an epsilon to the divisor (`/ (d + 1e-8)`), or `d.clamp_min(1e-8)`."),
    "spread-of-too-few": (
        "{spread} {detail}",
        "A single value has no standard deviation: use `correction=0`, or leave out groups of one.",
    ),
    "row-masked": (
        "softmax of a fully masked row",
        "Leave at least one element of each row unmasked, or set the result of such rows to 0.",
    ),
    "power": ("{detail}", "Clamp the base of the power, and add an epsilon where the exponent is below 1."),
    "exp-overflow": (
        "exp overflow",
        "Subtract the maximum first (`logsumexp`, `softmax`), or clamp the argument of the exponential.",
    ),
    "root-of-negative": ("square root of a negative number", _ROOT),
    "root-overflow": ("square root overflow", _ROOT),
    "reciprocal-root-of-zero": ("rsqrt of 0", "Add an epsilon: `rsqrt(x + 1e-8)`."),
    "labels-ignored": ("every label is {detail}", GENERAL_FIX),
    "mean-of-nothing": (
        "mean of an empty tensor",
        "Guard the empty selection: add nothing to the loss where it selects no element.",
    ),
    "spread-as-difference": (
        "square root of a variance (mean of squares − square of the mean) that rounding makes negative",
        "Compute it from deviations (`x.var(0)`, or Welford's update for a running one), or keep the sums in float64; "
        "and clamp it before the root.",
    ),
    "result": ("NaN result", GENERAL_FIX),
    "computed": ("the value computed for `{detail}`", GENERAL_FIX),
    "half-precision": (
        "a value above the float16 maximum of 65,504",
        "Run this part in float32 (`with torch.autocast(..., enabled=False)`), or use bfloat16.",
    ),
    "number-given": (
        "a {detail} scalar passed to `{operation}`",
        "Look at how this scalar is computed: it is NaN or Inf before it meets the model's output.",
    ),
    "slope-of-root": ("the slope of a square root at 0 is infinite", _EDGE),
    "slope-of-power": ("the slope of {detail} at 0 is infinite", _EDGE),
    "slope-at-one": ("the slope of {operation} at ±1 is infinite", _EDGE),
}


def reason(operation: Operation) -> str:
    log1p = operation.operation == "log1_p"
    text = REASONS[operation.why][0].format(
        operation="log1p" if log1p else operation.operation,
        zero="-1" if log1p else "0",
        spread="standard deviation" if operation.operation == "std" else "variance",
        beyond="at or beyond" if operation.operation.endswith("tanh") else "beyond",
        detail=operation.detail,
    )
    return f"{text}, in elements that are masked out afterwards" if operation.masked_out else text


def fix_of(operation: Operation) -> str:
    return REASONS[operation.why][1]
