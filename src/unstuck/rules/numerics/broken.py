"""A loss that is NaN or infinite, and what it comes from: read once, for every rule that has a share in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from unstuck.model import Case, Severity
from unstuck.recorder.records import Site
from unstuck.recorder.records.learning import Learning, Loss
from unstuck.recorder.records.numerics import BadRows, BadTensor, Birth, GrownWeight, Operation, Scaler, Why
from unstuck.rules.learning.measured import loss_scale

GROWN = 10.0
"""Times a weight matrix grew between two readings: no healthy step does that."""
SURE = 16
"""Losses that are no number: then it shows whether the parameters are broken, or single batches only."""
SKIPPED = 5
"""Losses that a loss scaler may see overflow until it has found its scale."""
IN_ROW = 12
"""Steps that a loss scaler skips one after the other; a handful is how it finds its scale."""
FALLEN = 16.0
"""Times that a scale below 1 is smaller than at the start."""
OVERFLOWS = ("exp-overflow", "power", "root-overflow")
"""What weights that have grown too large do to numbers."""
HALF = ("torch.float16",)

Kind = Literal["input", "labels", "operation", "growth", "gradient", "unknown"]


class Given(NamedTuple):
    """Data that came with NaN or infinity in it."""

    tensor: BadTensor
    name: str
    """As the training calls it; empty where that is not known."""
    whole: BadTensor | None
    """The data it was taken from, where that is at hand."""
    samples: list[int]
    """Indices in the dataset of the bad rows, where the batch came from a loader and was not cut."""


@dataclass(frozen=True)
class Origin:
    """Of one loss that became no number."""

    kind: Kind
    birth: Birth
    loss: Loss | None
    part: Operation | Given | GrownWeight | None = None
    """What of the birth decides; None: the parameters were broken before it, or nothing is known."""
    line: Site | None = None
    """Of what decides."""

    @property
    def site(self) -> Site | None:
        """That line; else the one that calls backward."""
        return self.line or self.birth.site

    @property
    def severity(self) -> Severity:
        """An error where most losses after it are none either: the parameters are broken."""
        if self.loss is None or self.kind in ("growth", "gradient"):
            return "error"
        return "error" if self.loss.nonfinite >= self.loss.count - self.birth.before else "warning"

    def toll(self) -> str:
        """How many losses were no number."""
        if self.loss is None:
            return ""
        bad, whole = self.loss.nonfinite, self.loss.nonfinite + self.loss.count
        before = f"; the one before it was {self.birth.last:.4g}" if self.birth.before else ""
        return (
            f"{bad:,} of {whole:,} losses are no number, the first ({self.birth.value}) at step {self.birth.step:,}"
            f"{before}"
        )


def origins(learning: Learning, case: Case) -> Iterator[Origin]:
    """Of every loss that became no number, where it came from; once it is seen what became of the run."""
    for birth in learning.births:
        loss = next((each for each in learning.losses if each.site == birth.site), None)
        if loss is not None and loss_scale(learning) is not None and loss.nonfinite <= SKIPPED and loss.count:
            continue
        origin = _decided(birth, loss)
        ruined = origin.kind in ("growth", "gradient")  # there is no way back from that
        if ruined or loss is None or loss.nonfinite >= SURE or case.outcome != "running":
            yield origin


def collapsed(scaler: Scaler | None) -> bool:
    """Its scale fell below 1, or still falls at every step."""
    if scaler is None or scaler.scale is None or not scaler.first:
        return False
    return (scaler.scale < 1 and scaler.scale * FALLEN < scaler.first) or scaler.skipped_in_row >= IN_ROW


def samples_of(birth: Birth, bad: BadRows, size: int) -> list[int]:
    """Indices in the dataset of the bad rows of a tensor with so many; none where its rows are not the batch's."""
    for batch in birth.batch:
        if batch.indices and batch.size == size:
            return [batch.indices[row] for row in bad.rows if row < len(batch.indices)]
    return []


def listed(numbers: list[int], more: int = 0) -> str:
    """411, 733 and 5 more"""
    text = ", ".join(f"{number:,}" for number in numbers)
    rest = more - len(numbers)
    return f"{text} and {rest:,} more" if rest > 0 else text


# --- what decides, the surest first --------------------------------------------------------------------------


def _decided(birth: Birth, loss: Loss | None) -> Origin:
    made = next((each for each in birth.operations if each.made), None)
    outside = _no_mask(birth.outside)
    if made is not None and made.why == "labels-ignored":
        return Origin("labels", birth, loss, made, made.site)
    if made is not None and made.backward:
        return Origin("operation", birth, loss, made, made.site)
    if birth.broken_parameters:
        return Origin("gradient", birth, loss)
    if outside is not None and (made is None or outside.order <= made.order):
        return _from_outside(birth, loss, outside)
    if made is not None:
        grown = _grown(birth) if made.why in OVERFLOWS else None
        return Origin("growth" if grown is not None else "operation", birth, loss, grown or made, made.site)
    return _from_the_rest(birth, loss)


def _from_outside(birth: Birth, loss: Loss | None, tensor: BadTensor) -> Origin:
    """A tensor without a graph was no number before the first operation that was given it."""
    if not tensor.shape:
        what = "NaN" if tensor.nan else "infinite"
        number = _shown_by(tensor, tensor.operation, "number-given", what, tensor.site)
        return Origin("operation", birth, loss, number, tensor.site)
    grown = _grown(birth) if tensor.bad_rows >= tensor.shape[0] else None
    return Origin("growth", birth, loss, grown) if grown is not None else _from_data(birth, loss, tensor)


def _from_the_rest(birth: Birth, loss: Loss | None) -> Origin:
    """Neither an operation nor data was seen to do it: what weights, the script's tensors and results say."""
    oldest = birth.operations[0] if birth.operations else None
    line = oldest.site if oldest is not None else None
    grown = _grown(birth)
    if grown is not None:
        return Origin("growth", birth, loss, grown, line)
    data = _no_mask(birth.inputs)
    if data is not None:
        return _from_data(birth, loss, data)
    half = next((each for each in birth.operations if each.dtype in HALF), None)
    if half is not None:
        return Origin("operation", birth, loss, replace(half, why="half-precision", example=""), half.site)
    return Origin("unknown", birth, loss, oldest, line)


def _from_data(birth: Birth, loss: Loss | None, tensor: BadTensor) -> Origin:
    """Data that came so; or what the script made of numbers, without a graph."""
    name, shape = _name(tensor, birth.inputs), tensor.shape
    made = next((each.computed for each in birth.inputs if each.name == name and each.computed is not None), None)
    if made is not None:
        done = _shown_by(tensor, made.operation, made.why, made.detail or name, made.site)
        return Origin("operation", birth, loss, done, made.site)
    whole = next((each for each in birth.inputs if each.shape[1:] == shape[1:] and each.shape[:1] > shape[:1]), None)
    return Origin("input", birth, loss, Given(tensor, name, whole, samples_of(birth, tensor, shape[0])), tensor.site)


def _no_mask(tensors: list[BadTensor]) -> BadTensor | None:
    """The first that holds more than the -inf of a mask."""
    return next((each for each in tensors if not each.negative_inf_only), None)


def _name(tensor: BadTensor, inputs: list[BadTensor]) -> str:
    """What the training calls it: the same memory, or the same rows."""
    alike = [each for each in inputs if each.shape == tensor.shape]
    same = [each for each in alike if each.address == tensor.address]
    same = same or [each for each in alike if each.rows == tensor.rows]
    return same[0].name if same else tensor.name


def _shown_by(tensor: BadTensor, operation: str, why: Why, detail: str, site: Site | None) -> Operation:
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


def _grown(birth: Birth) -> GrownWeight | None:
    """The weight matrix that grew most since it was last looked at, if that is far."""
    return next((weight for weight in birth.weights if weight.now > GROWN * weight.before > 0), None)
