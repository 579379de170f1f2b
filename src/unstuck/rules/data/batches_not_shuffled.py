"""batches-not-shuffled: each batch holds hardly more than one class, though the data has many.

What it sees
    The labels within a batch vary far less than those of all batches together. Without a DataLoader the targets that
    the loss gets are compared, batch by batch: classes, or numbers of which each batch has its own range.

Why it matters
    Each batch pulls the model towards its own class, and the next class undoes it: the loss is low within a class and
    jumps where the next begins. Batch normalization sees one class at a time, too.

Evidence
    Entropy of the labels within batches and over all, and, in a training, how the loss jumps.

Fix
    `shuffle=True` in the DataLoader; for a stream, shuffle the files and a buffer of samples.

When it is wrong
    A batch sampler of the user's own (metric learning, curricula) is not reported while the model learns, nor is a
    series of numbers in the order of time. It is information unless the loss falls and comes back, again and again, to
    that of a constant prediction, or never leaves it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from unstuck.model import Case, Finding, Fix, Severity
from unstuck.rules.data.contents import (
    MIN_LABEL_BATCHES,
    MIN_LABELS_PER_BATCH,
    Data,
    class_by_class,
    read_data,
)
from unstuck.rules.rule import Rule
from unstuck.rules.training import constant_loss, curve, loss_of

MIN_LOSS_VALUES = 60
MIN_JUMP = 0.95  # where the loss jumps to, as a share of that of a constant prediction
MAX_FALL = 0.75  # where it falls to in between, as a share of where it jumps to
MIN_RETURNS = 2  # from the fall to the jump
MAX_CLASSES_MIXED, MAX_NUMBERS_MIXED = 0.3, 0.1  # variance of targets within a batch, as a share of that of all


@dataclass(frozen=True)
class Order:
    """How little the targets of one batch differ."""

    title: str
    evidence: str
    batches: int  # that were read
    numbers: bool = False  # they are no classes


def decide(case: Case) -> Iterable[Finding]:
    for data in read_data(case):
        orders = [order for order in (_of_labels(data), _of_targets(data)) if order is not None]
        order, loader = max(orders, key=lambda order: order.batches, default=None), data.loader
        if order is None or (loader.own_batches and not data.fails):
            continue
        jumps = _jumps(data)
        if order.numbers and not jumps:
            continue  # a series may be trained in its order
        yield RULE.finding(
            severity=_severity(data, jumps),
            confidence=0.85,
            title=f"The batches are not shuffled: {order.title}",
            evidence=(
                order.evidence,
                f"order of the samples: {loader.sampler}"
                if data.has_loader
                else f"{data.extent()} were read; they come from no DataLoader",
                jumps or ("the loss never fell below that of a constant prediction" if data.fails else data.harm()),
            ),
            where=data.where_used(),
            fix=_fix(data),
        )


def _of_labels(data: Data) -> Order | None:
    labels = data.labels()
    if labels is None or not class_by_class(labels):
        return None
    return Order(
        f"each holds hardly more than one of {labels.classes} classes",
        f"entropy of the labels {labels.batch_entropy:.2f} within a batch of {labels.batch:.0f} and "
        f"{labels.entropy:.2f} over all {labels.samples:,} ({labels.batches} batches read)",
        labels.batches,
    )


def _of_targets(data: Data) -> Order | None:
    """By what the loss got, in more batches than the model was watched with."""
    for head in data.learning.heads if data.learning is not None else ():
        target = head.target
        if target.mixed is None or target.mixed_batches < MIN_LABEL_BATCHES or target.mixed_size < MIN_LABELS_PER_BATCH:
            continue
        classes = target.classes or 0
        if target.mixed < (MAX_CLASSES_MIXED if classes else MAX_NUMBERS_MIXED):
            return Order(
                f"each holds hardly more than one of {classes} classes"
                if classes
                else "each holds a small range of the targets",
                f"targets vary within a batch of {target.mixed_size:.0f} by {target.mixed:.1%} of their variance over "
                f"all {target.count:,} ({target.mixed_batches} batches read)",
                target.mixed_batches,
                numbers=not classes,
            )
    return None


def _severity(data: Data, jumps: str) -> Severity:
    """An error where the loss is on average no better than a constant prediction."""
    if not (jumps or data.fails or data.useless) or data.loader.own_order:
        return "info"
    if data.useless:
        return "error"
    learning, loss = data.learning, data.loss
    best = [b for head in learning.heads if (b := constant_loss(head)) is not None] if learning is not None else []
    values = curve(loss) if loss is not None else []
    return "error" if best and values and fmean(values[len(values) // 2 :]) > MIN_JUMP * max(best) else "warning"


def _jumps(data: Data) -> str:
    """In the second half of the training: where the loss falls to and jumps to, again and again."""
    learning = data.learning
    for head in learning.heads if learning is not None else ():
        loss, best = loss_of(learning, head) if learning is not None else None, constant_loss(head)
        if loss is None or best is None or loss.count < MIN_LOSS_VALUES:
            continue
        late = curve(loss)[len(loss.points) // 2 :]
        if len(late) < 10:
            continue
        ordered = sorted(late)
        high, low = ordered[-max(1, len(late) // 20)], ordered[len(late) // 5]
        far = high > MIN_JUMP * best and low < MAX_FALL * high
        if far and _returns(late, MAX_FALL * high, MIN_JUMP * best) >= MIN_RETURNS:
            return (
                f"in the second half of the training the loss falls to {low:.3g} and jumps to {high:.3g}, again and "
                f"again; a constant prediction gives {best:.3g}"
            )
    return ""


def _returns(values: list[float], low: float, high: float) -> int:
    """How often it came from below the one to above the other."""
    count, fallen = 0, False
    for value in values:
        if value < low:
            fallen = True
        elif fallen and value > high:
            count, fallen = count + 1, False
    return count


def _fix(data: Data) -> str | Fix:
    if data.loader.own_batches:
        return "Shuffle the indices in the batch sampler before it cuts them into batches, anew for every epoch."
    if data.has_loader:
        shuffle = "Give the DataLoader `shuffle=True`; for a stream, shuffle the files and a buffer of samples."
        return Fix(shuffle, setting="shuffling")
    return "Shuffle the samples before they are cut into batches, anew for every epoch (`torch.randperm`)."


RULE = Rule(
    "batches-not-shuffled",
    "data",
    decide,
    explains=frozenset(
        {"learning-rate-too-high", "loss-oscillates", "loss-spike", "no-better-than-constant", "predicts-one-class"}
    ),
    gathers=True,
)
