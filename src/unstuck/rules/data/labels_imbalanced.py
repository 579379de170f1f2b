"""labels-imbalanced: some classes are more than ten times as frequent as others.

What it sees
    The labels of the samples read, counted.

Why it matters
    A model that always predicts the most frequent class is right most of the time: the loss quickly falls to that level
    and may stay there. Rare classes give hardly any gradient.

Evidence
    How often the most frequent and the rarest classes come.

Fix
    Weight the classes in the loss (`weight=`, `pos_weight=`), or draw rare ones more often (`WeightedRandomSampler`),
    and look at the score of each class instead of the accuracy.

When it is wrong
    Real data is often like this, and many models learn it well. It is information only; if the predictions collapse,
    predicts-one-class says so. Not counted: the targets of a regression, labels that the loss ignores, and batches of
    one class each, because those that were read say nothing about the others.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.rules.data.contents import class_by_class, read_data
from unstuck.rules.rule import Rule

MIN_RATIO = 10.0
CHANCE_COUNT = 3  # a class seen so few times in a few batches may be somewhat more frequent than that
MIN_SAMPLES = 100
MAX_CLASSES = 100


def decide(case: Case) -> Iterable[Finding]:
    for data in read_data(case):
        labels = data.labels()
        if labels is None or labels.samples < MIN_SAMPLES or labels.classes > MAX_CLASSES:
            continue
        (most, often), (least, rarely) = labels.counts[0], labels.counts[-1]
        if not data.scanned and (class_by_class(labels) or often <= MIN_RATIO * (rarely + CHANCE_COUNT)):
            continue
        if often <= MIN_RATIO * rarely:
            continue
        ends = dict.fromkeys((*labels.counts[:3], *labels.counts[-3:]))
        shares = "; ".join(f"class {value:g} {count / labels.samples:.1%}" for value, count in ends)
        yield RULE.finding(
            severity="info",
            confidence=0.9,
            title=f"Class {most:g} is {often / rarely:,.0f} times as frequent as class {least:g}",
            evidence=(
                f"{shares} of {labels.samples:,} labels in {labels.classes} classes",
                f"always predicting class {most:g} is right for {often / labels.samples:.1%}",
            ),
            where=data.where(),
            fix="Weight the classes in the loss (`weight=`), or draw rare ones more often (`WeightedRandomSampler`) "
            "and judge by the score of each class, not by the accuracy.",
            also=data.also(),
        )


RULE = Rule("labels-imbalanced", "data", decide, gathers=True)
