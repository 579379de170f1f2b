"""batches-not-shuffled: each batch holds hardly more than one class, though the data has many.

What it sees
    The labels within a batch vary far less than those of all batches together.

Why it matters
    Each batch pulls the model towards its own class, and the next class undoes it: the loss is low within a class and
    jumps where the next begins. Batch normalization sees one class at a time, too.

Evidence
    Entropy of the labels within batches and over all, and, in a training, how the loss jumps.

Fix
    `shuffle=True` in the DataLoader; for a stream, shuffle the files and a buffer of samples.

When it is wrong
    A batch sampler of one's own (metric learning, curricula) is left alone while the model learns. It is information
    unless the loss is seen to fall and to come back, again and again, to that of a constant prediction, or never leaves
    that.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.data import LabelCounts
from unstuck.rules.data.seen import Data, seen
from unstuck.rules.rule import Rule
from unstuck.rules.training import constant_loss, loss_of

WITHIN = 0.3
OVERALL = 0.5
BATCH = 4
BATCHES = 8
STEPS = 60
HIGH, LOW = 0.95, 0.75
"""Where the loss jumps to, beside that of a constant prediction; and falls to in between, beside where it jumps to."""
AGAIN = 2
PLAIN = "Give the DataLoader `shuffle=True`; for a stream, shuffle the files and a buffer of samples."
OWN = "Shuffle the indices in the batch sampler before they are cut into batches, anew for every pass."
SLICED = "Shuffle the samples before they are cut into batches, anew for every pass (`torch.randperm`)."


def decide(case: Case) -> Iterable[Finding]:
    for data in seen(case):
        labels = data.labels()
        if labels is not None and class_by_class(labels) and (not data.loader.own_batches or _never_leaves(data)):
            yield _finding(data, labels)


def _never_leaves(data: Data) -> bool:
    """The loss stays that of a constant prediction."""
    return data.constant and not data.learned


def class_by_class(labels: LabelCounts) -> bool:
    """Each batch holds hardly more than one of many classes."""
    if labels.batches < BATCHES or labels.batch < BATCH or labels.batch_entropy is None:
        return False
    if labels.classes > labels.samples / 4:
        return False
    possible = min(log(labels.classes), log(labels.batch))
    return labels.entropy >= OVERALL * log(labels.classes) and labels.batch_entropy < WITHIN * possible


def _jumps(data: Data) -> tuple[float, float, float] | None:
    """In the second half of the training: where the loss jumps to, falls to, and that of a constant prediction."""
    for head in data.learning.heads if data.learning is not None else ():
        loss = loss_of(data.learning, head) if data.learning is not None else None
        best = constant_loss(head)
        if loss is None or best is None or loss.count < STEPS:
            continue
        late = [value for _, value in loss.points[len(loss.points) // 2 :]]
        if len(late) < 10:
            continue
        ordered = sorted(late)
        high, low = ordered[-max(1, len(late) // 20)], ordered[len(late) // 5]
        if high > HIGH * best and low < LOW * high and _returns(late, LOW * high, HIGH * best) >= AGAIN:
            return high, low, best
    return None


def _returns(values: list[float], low: float, high: float) -> int:
    """How often it came from below the one to above the other."""
    count, fallen = 0, False
    for value in values:
        if value < low:
            fallen = True
        elif fallen and value > high:
            count, fallen = count + 1, False
    return count


def _finding(data: Data, labels: LabelCounts) -> Finding:
    jumps = _jumps(data)
    how = OWN if data.loader.own_batches else PLAIN if data.has_loader else SLICED
    fails = jumps is not None or _never_leaves(data)
    return RULE.finding(
        severity="warning" if fails and not data.loader.own_order else "info",
        confidence=0.85,
        title=f"The batches are not shuffled: each holds hardly more than one of {labels.classes} classes",
        evidence=tuple(_evidence(data, labels, jumps)),
        where=data.where_used(),
        fix=Fix(how),
        seen_by="flight",
    )


def _evidence(data: Data, labels: LabelCounts, jumps: tuple[float, float, float] | None) -> Iterable[str]:
    yield (
        f"entropy of the labels {labels.batch_entropy:.2f} within a batch of {labels.batch:.0f} and "
        f"{labels.entropy:.2f} over all {labels.samples:,} ({labels.batches} batches read)"
    )
    if data.has_loader:
        yield f"order of the samples: {data.loader.sampler}"
    else:
        yield f"{data.read()} were looked at; they come from no DataLoader"
    if jumps is not None:
        high, low, best = jumps
        yield (
            f"in the second half of the training the loss falls to {low:.3g} and jumps to {high:.3g}, again and again; "
            f"a constant prediction gives {best:.3g}"
        )
    elif _never_leaves(data):
        yield "the loss never came below that of a constant prediction"


RULE = Rule(
    "batches-not-shuffled",
    "data",
    decide,
    explains=frozenset(("loss-oscillates", "loss-spike", "no-better-than-constant")),
    gathers=True,
)
