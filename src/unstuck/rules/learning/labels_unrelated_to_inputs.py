"""labels-unrelated-to-inputs: the targets have nothing to do with the inputs they come with.

What it sees
    The loss has come to rest at the entropy of the class frequencies, or at the variance of the targets, and all that
    can be measured while the training runs is in order. Pairs that were mixed up look just like a hard task; only an
    experiment tells them apart.

Why it matters
    There is nothing to learn: inputs sorted one way and targets another, or a shuffle of one of the two.

Evidence
    None from a run alone: it asks for the experiment that decides.

Fix
    Print some pairs as they come out of the loader. Train once with permuted targets: if the curve is the same, the
    targets said nothing.

When it is wrong
    It never speaks without the experiment. In reinforcement learning, and where the target is noise by design, the
    question is void.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Question
from unstuck.rules.learning import curves
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Question]:
    if any(True for _ in curves.stuck(case)):
        yield Question(
            RULE.name,
            "Do the targets belong to the inputs?",
            "Train once with permuted targets: if the loss takes the same course, they do not.",
        )


RULE = Rule("labels-unrelated-to-inputs", "learning", decide, asks_only=True)
