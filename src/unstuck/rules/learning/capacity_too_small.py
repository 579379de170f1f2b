"""capacity-too-small: the model is too small for what it is to learn.

What it sees
    The loss has come to rest at that of the best constant prediction, and everything that can be measured while the
    training runs is in order: gradients arrive, weights move, shapes and ranges agree. Whether a larger model would
    learn cannot be seen from that; it takes an experiment.

Why it matters
    A model that cannot represent the answer has nothing to learn but the mean.

Evidence
    None from a run alone: it asks for the experiment that decides.

Fix
    Fit one batch. A model that cannot bring the loss of a single batch near 0 is too small, or cut off from it.

When it is wrong
    It never speaks without the experiment: most models that seem too small have a rate, a loss or data at fault.
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
            "Is the model too small?",
            "Train on one batch only: if its loss comes near 0, the model is large enough.",
        )


RULE = Rule("capacity-too-small", "learning", decide, asks_only=True)
