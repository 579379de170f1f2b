"""softmax-over-wrong-dim: the probabilities sum to 1 over the batch (or over time), not over the classes.

What it sees
    The softmax or log-softmax that gives the output runs over another dimension than that of the classes, mostly
    dimension 0, the samples of the batch.

Why it matters
    The samples of a batch compete with each other for every class. What the model is trained for then depends on which
    samples happen to be together, and its output for one sample alone is always 1.

Evidence
    Shape and dimension of the operation, from the graph of the loss, and what the rows of the output sum to.

Fix
    Give the dimension of the classes: `dim=1`, or `dim=-1` where they come last.

When it is wrong
    A loss that compares the samples of a batch on purpose. A square of similarities (samples against samples) is not
    reported, and attention inside of the model is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, LossHead
from unstuck.rules.learning.measured import where
from unstuck.rules.rule import Rule

TIMES = 3
"""Graphs read that have it."""
OFF = 0.02
"""How far from 1 a row of probabilities may sum: half precision stays within."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for head in learning.heads:
            wrong = _wrong(head) if head.times >= TIMES else None
            if wrong is not None:
                yield _finding(learning, head, *wrong)
                break


def _wrong(head: LossHead) -> tuple[str, int, list[int], int] | None:
    """(operation, its dimension, shape, the dimension it should have)."""
    if _off(head):
        dim, shape = head.dim, head.shape
        if head.op == "cross_entropy" and dim is not None and len(shape) > 1:
            if dim % len(shape) != 1:
                return "log_softmax", dim, shape, 1
            if len(shape) > 2:
                return "log_softmax", dim, shape, len(shape) - 1
        if head.op == "nll" and head.after == "log" and len(shape) == 2:
            return "softmax", 0, shape, 1
    return _in_front(head)


def _in_front(head: LossHead) -> tuple[str, int, list[int], int] | None:
    """The same of a softmax in front of the loss: over samples, of which there are not as many as classes."""
    shape = head.after_shape
    if head.after != "softmax" or head.after_dim is None or len(shape) < 2 or head.after_dim % len(shape) != 0:
        return None
    if shape[0] == 1 or shape[1:] == shape[:1] or shape[-1] == 1:
        return None
    return "softmax", 0, shape, 1 if len(shape) == 4 else len(shape) - 1


def _off(head: LossHead) -> bool:
    """The probabilities of the classes of one sample do not sum to 1."""
    rows = head.prediction.rows
    return rows is not None and (rows.min < 1 - OFF or rows.max > 1 + OFF)


def _finding(learning: Learning, head: LossHead, op: str, dim: int, shape: list[int], right: int) -> Finding:
    rows = head.prediction.rows
    over = "the samples of the batch" if dim % len(shape) == 0 else f"dimension {dim}"
    sums = (
        f"the probabilities of one sample sum to between {rows.min:.3g} and {rows.max:.3g} instead of 1"
        if rows and _off(head)
        else f"over the {shape[right]} classes of one sample the probabilities do not sum to 1"
    )
    return RULE.finding(
        severity="error",
        confidence=0.93,
        title=f"The {op} that gives the output runs over {over} (dim={dim}), not over the classes",
        evidence=(
            f"{op} with dim={dim} on a tensor of shape {shape}, in {head.times:,} of the graphs read",
            sums,
        ),
        where=where(learning, head.site),
        fix=Fix(f"Give the dimension of the classes: dim={right} (or dim=-1 where they come last)."),
        seen_by="flight",
    )


RULE = Rule(
    "softmax-over-wrong-dim",
    "learning",
    decide,
    explains=frozenset(
        (
            "activation-applied-twice",
            "predicts-one-class",
            "no-better-than-constant",
            "still-improving",
            "loss-oscillates",
        )
    ),
    gathers=True,
)
