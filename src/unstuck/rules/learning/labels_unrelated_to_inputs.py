"""labels-unrelated-to-inputs: the targets have nothing to do with their inputs.

What it sees
    The loss has come to rest at the entropy of the class frequencies, or at the variance of the targets, and inputs
    that come once more have another target each time: the two are shuffled apart while the training runs. Where each
    input keeps the wrong target (they were shuffled apart once, before) that looks just like a hard task; only an
    experiment tells these two apart.

Why it matters
    There is nothing to learn: inputs sorted one way and targets another, or only one of the two shuffled.

Evidence
    How many inputs came again, how many of these with another target, one of them, and the loss compared with that of
    a constant prediction. Without that it asks for the experiment that decides.

Fix
    Shuffle both with the same permutation. Otherwise print some pairs, and train once with permuted targets: if the
    curve is the same, the targets carried no information.

When it is wrong
    It says nothing where inputs do not come again, or are changed each time (augmentation, noise), nor where the loss
    is below that of a constant prediction: then the targets do say something about the inputs.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Question
from unstuck.recorder.records.data import LoaderData
from unstuck.recorder.records.learning import Learning, LossHead
from unstuck.rules.rule import Rule
from unstuck.rules.training import now, number, stuck_at_constant, where

MIN_OTHERS = 12  # inputs that came once more with another target
MIN_CHANGED = 0.8  # of those that would have another target if it were drawn at random


def decide(case: Case) -> Iterable[Finding | Question]:
    for learning, head, loss, best in stuck_at_constant(case):
        seen = [each for each in case.data if each.pid == learning.pid][-1:]
        apart = next((data for each in seen for data in each.loaders if data.trains and _is_apart(data)), None)
        if apart is None:
            yield Question(
                RULE.name,
                "Do the targets belong to the inputs?",
                "Train once with permuted targets: if the loss curve is the same, they do not.",
            )
            return
        yield _finding(learning, head, apart, f"a constant prediction gives {number(best)}{now(loss)}")


def _is_apart(data: LoaderData) -> bool:
    pairs, labels = data.pairs, data.labels
    shares = [count / labels.samples for _, count in labels.counts] if labels is not None and labels.samples else []
    by_chance = 1 - sum(share * share for share in shares)  # that a target drawn at random is another one
    return pairs.changed >= max(MIN_OTHERS, MIN_CHANGED * by_chance * pairs.again)


def _finding(learning: Learning, head: LossHead, data: LoaderData, outcome: str) -> Finding:
    pairs = data.pairs
    example = ""
    if pairs.example is not None:
        one, target, other, another = pairs.example
        example = f"one input has the target {target:g} in batch {one} of those read, and {another:g} in batch {other}"
    return RULE.finding(
        severity="error",
        confidence=0.9,
        title="Targets do not belong to their inputs: the same input comes with another target each time",
        evidence=(
            f"{pairs.again:,} inputs came once more in a later batch, {pairs.changed:,} of them with another target",
            example,
            outcome,
        ),
        where=where(learning, data.made or data.site or head.site),
        fix="Shuffle inputs and targets with the same permutation: `order = torch.randperm(len(x))`, then `x[order]` "
        "and `y[order]`.",
    )


RULE = Rule(
    "labels-unrelated-to-inputs", "learning", decide, explains=frozenset(("no-better-than-constant",)), gathers=True
)
