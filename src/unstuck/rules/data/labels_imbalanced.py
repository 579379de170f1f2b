"""labels-imbalanced: some classes are more than ten times as frequent as others.

What it sees
    The labels of the samples read, counted.

Why it matters
    A model that always names the most frequent class is right most of the time: the loss falls at once to that and may
    stay there. Rare classes give hardly any gradient.

Evidence
    How often the most frequent and the rarest classes come.

Fix
    Weigh the classes in the loss (`weight=`, `pos_weight=`), or draw rare ones more often (`WeightedRandomSampler`),
    and look at the score of each class instead of the accuracy.

When it is wrong
    The world is often so, and many models learn it well. It is information only; where the predictions collapse,
    predicts-one-class says so. Counts as the target of a regression, and labels that the loss ignores, are left alone,
    and so are batches of one class each: those that were read say nothing of the others.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.data.batches_not_shuffled import class_by_class
from unstuck.rules.data.seen import seen
from unstuck.rules.rule import Rule

TIMES = 10.0
CHANCE = 3
"""A class seen so few times may be somewhat more frequent than that."""
SAMPLES = 100
CLASSES = 100


def decide(case: Case) -> Iterable[Finding]:
    for data in seen(case):
        labels = data.labels()
        if labels is None or labels.samples < SAMPLES or labels.classes > CLASSES:
            continue
        if not data.scanned and class_by_class(labels):
            continue  # the batches that were read say nothing of the others
        (most, often), (least, rarely) = labels.counts[0], labels.counts[-1]
        if often > TIMES * (rarely + (0 if data.scanned else CHANCE)):
            yield RULE.finding(
                severity="info",
                confidence=0.9,
                title=f"Class {most:g} is {often / rarely:,.0f} times as frequent as class {least:g}",
                evidence=(
                    "; ".join(
                        f"class {value:g} {count / labels.samples:.1%}"
                        for value, count in dict.fromkeys((*labels.counts[:3], *labels.counts[-3:]))
                    )
                    + f" of {labels.samples:,} labels in {labels.classes} classes",
                    f"always naming class {most:g} is right for {often / labels.samples:.1%}",
                ),
                where=data.where(),
                fix=Fix(
                    "Weigh the classes in the loss (`weight=`), or draw rare ones more often (`WeightedRandomSampler`) "
                    "and judge by the score of each class, not by the accuracy."
                ),
                seen_by="flight",
                also=data.also(),
            )


RULE = Rule("labels-imbalanced", "data", decide, gathers=True)
