"""capacity-too-small: the model is too small for its task.

What it sees
    The loss has come to rest at that of the best constant prediction, and everything that can be measured during the
    training is fine: gradients arrive, weights move, shapes and ranges agree. Whether a larger model would learn, only
    an experiment can show.

Why it matters
    A model that cannot represent the answer learns the mean, and nothing else.

Evidence
    None from a run alone: it asks for the experiment that decides.

Fix
    Fit one batch. A model that cannot bring the loss of a single batch near 0 is too small, or cut off from it.

When it is wrong
    It says nothing without the experiment: for most models that seem too small, the cause is the learning rate, the
    loss or the data.
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
            "Is the model too small?",
            "Train on one batch only: if its loss comes near 0, the model is large enough.",
        )


RULE = Rule("capacity-too-small", "learning", decide, asks_only=True)
