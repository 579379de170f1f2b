"""labels-unrelated-to-inputs: the targets have nothing to do with their inputs.

What it sees
    The loss has come to rest at the entropy of the class frequencies, or at the variance of the targets, and everything
    that can be measured during the training is fine. Pairs that were mixed up look just like a hard task; only an
    experiment tells them apart.

Why it matters
    There is nothing to learn: inputs sorted one way and targets another, or only one of the two shuffled.

Evidence
    None from a run alone: it asks for the experiment that decides.

Fix
    Print some pairs as they come out of the loader. Train once with permuted targets: if the curve is the same, the
    targets carried no information.

When it is wrong
    It says nothing without the experiment. In reinforcement learning, and where the target is noise by design, the
    question does not arise.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Question
from unstuck.rules.rule import Rule
from unstuck.rules.training import stuck_at_constant


def decide(case: Case) -> Iterable[Question]:
    if any(True for _ in stuck_at_constant(case)):
        yield Question(
            RULE.name,
            "Do the targets belong to the inputs?",
            "Train once with permuted targets: if the loss curve is the same, they do not.",
        )


RULE = Rule("labels-unrelated-to-inputs", "learning", decide, asks_only=True)
