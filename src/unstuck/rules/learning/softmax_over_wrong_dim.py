"""softmax-over-wrong-dim: the probabilities sum to 1 over the batch (or over time), not over the classes.

What it sees
    The softmax or log-softmax of the output runs over another dimension than the classes, mostly dimension 0, the
    samples of the batch (of what CTC gets: the frames; `nn.LogSoftmax()` without `dim` takes it for three
    dimensions). Or a softmax anywhere in the model runs over a dimension that has one element, as
    `softmax(scores, dim=-1)` does where the scores of an attention have the shape (batch, items, 1).

Why it matters
    The samples of a batch compete with each other for every class. What the model learns then depends on which samples
    happen to be together, and its output for a single sample is always 1. Over one element every result is 1: no
    gradient comes through, and an attention that weighs with it is a plain sum.

Evidence
    Shape and dimension of the operation, from the graph of the loss, and what the rows of the output sum to; for one
    over a single element the parameters that only it leads to, whose gradients are all zeros.

Fix
    Set the dimension of the classes: `dim=1`, or `dim=-1` where they come last.

When it is wrong
    A loss that compares the samples of a batch on purpose. A square of similarities (samples against samples) is not
    reported, and attention inside the model is not judged, but where all its weights are 1 because it runs over one
    element. Scores with more than three dimensions may belong to a model that attends to one thing on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import FlatOperation, Learning, LossHead, Parameter
from unstuck.rules.rule import Rule
from unstuck.rules.training import counted, first_by_loss_function, layer_names, loss_site, where

MIN_STEPS = 5  # observed, all without a gradient
MAX_OFF_ONE = 0.02  # of a row of probabilities: half precision stays within


class WrongDim(NamedTuple):
    operation: str
    dim: int
    shape: list[int]
    right_dim: int


def decide(case: Case) -> Iterable[Finding]:
    yield from first_by_loss_function(case, _judge)
    for learning in case.learnings:
        flat = learning.flat
        lost = [p for p in learning.parameters if flat is not None and p.name in flat.lost and p.seen >= MIN_STEPS]
        if flat is not None and flat.over_one_element and lost and all(p.zero == p.seen for p in lost):
            yield _over_one(learning, flat, lost)


def _over_one(learning: Learning, flat: FlatOperation, lost: list[Parameter]) -> Finding:
    operation, shape = flat.operation, flat.shape
    meant = max(range(1, len(shape)), key=lambda dim: shape[dim])
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"A {operation} runs over one element, so all it gives is {'1' if operation == 'softmax' else '0'}",
        evidence=(
            f"its result has the shape {shape}, and the dimension that it runs over has 1 element",
            f"the gradient of {counted(lost)} of {layer_names(lost)}, which the loss reaches only through it, was all "
            f"zeros in each of {max(p.seen for p in lost)} steps observed",
        ),
        where=where(learning, flat.site or loss_site(learning)),
        fix=f"Let it run over the {shape[meant]} elements of dimension {meant}: `{operation}(…, dim={meant})`."
        if shape[meant] > 1
        else "Use a sigmoid and `binary_cross_entropy_with_logits` for one output, or give it one output a class.",
    )


def _judge(learning: Learning, head: LossHead) -> Finding | None:
    wrong = _in_loss(head) or _before_loss(head)
    return _finding(learning, head, wrong) if wrong is not None else None


def _in_loss(head: LossHead) -> WrongDim | None:
    dim, shape, rank = head.dim, head.shape, len(head.shape)
    if not _rows_are_off(head):
        return None
    if head.op == "cross_entropy" and dim is not None and rank > 1:
        if dim % rank != 1:
            return WrongDim("log_softmax", dim, shape, 1)
        if rank > 2:
            return WrongDim("log_softmax", dim, shape, rank - 1)
    if head.op == "ctc" and dim is not None and rank > 1:  # it may be turned round after that
        classes = [at for at, size in enumerate(shape) if size == head.prediction.width and at != dim % rank]
        return WrongDim("log_softmax", dim, shape, classes[-1]) if classes else None
    if head.op == "nll" and head.after == "log" and rank == 2:
        return WrongDim("softmax", 0, shape, 1)
    return None


def _before_loss(head: LossHead) -> WrongDim | None:
    """A softmax over samples, of which there are not as many as classes."""
    shape, rank = head.after_shape, len(head.after_shape)
    if head.after != "softmax" or head.after_dim is None or rank < 2 or head.after_dim % rank != 0:
        return None
    if shape[0] == 1 or shape[1:] == shape[:1] or shape[-1] == 1:
        return None
    return WrongDim("softmax", 0, shape, 1 if rank == 4 else rank - 1)


def _rows_are_off(head: LossHead) -> bool:
    """The class probabilities of one sample do not sum to 1."""
    rows = head.prediction.rows
    return rows is not None and (rows.min < 1 - MAX_OFF_ONE or rows.max > 1 + MAX_OFF_ONE)


def _finding(learning: Learning, head: LossHead, wrong: WrongDim) -> Finding:
    operation, dim, shape, right = wrong
    rows = head.prediction.rows
    one = "frame" if head.op == "ctc" else "sample"
    over = "the samples of the batch" if dim % len(shape) == 0 and one == "sample" else f"dimension {dim % len(shape)}"
    return RULE.finding(
        severity="error",
        confidence=0.93,
        title=f"The {operation} of the output runs over {over} (dim={dim}), not over the classes",
        evidence=(
            f"{operation} with dim={dim} on a tensor of shape {shape}, in {head.times:,} sampled steps",
            f"the probabilities of one {one} sum to between {rows.min:.3g} and {rows.max:.3g} instead of 1"
            if rows is not None and _rows_are_off(head)
            else f"over the {shape[right]} classes of one sample the probabilities do not sum to 1",
        ),
        where=where(learning, head.site),
        fix=f"Set the dimension of the classes: dim={right} (or dim=-1 where they come last).",
    )


RULE = Rule(
    "softmax-over-wrong-dim",
    "learning",
    decide,
    explains=frozenset(("activation-applied-twice", "predicts-one-class", "loss-oscillates")),
    gathers=True,
)
