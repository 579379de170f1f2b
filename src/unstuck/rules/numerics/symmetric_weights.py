"""symmetric-weights: every unit of a layer has the same weights, and they can never become different.

What it sees
    Weight matrices all rows of which are the same at the start, element by element, and still are after training steps.

Why it matters
    Units with the same weights get the same gradient: a layer of many units stays a layer of one. With zeros throughout
    there is no gradient at all.

Evidence
    The layers, how many rows are alike, and that they still were after how many steps.

Fix
    Begin with random weights (the default of the layers, or kaiming/xavier); constants are for biases and norms.

When it is wrong
    Matrices that begin at 0 by design (the second half of a LoRA, the last layer of a block) become different with the
    first steps, and are not reported; nor are embeddings and what does not train.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Parameter
from unstuck.rules.learning.measured import where
from unstuck.rules.learning.ownership import layers, line
from unstuck.rules.rule import Rule

STEPS = 8
"""Of the training, and gradients looked at."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        alike = [each for each in learning.parameters if _alike(each)]
        stuck = [each for each in alike if each.still_alike and _looked(each)]
        if stuck and learning.steps >= STEPS:
            yield _finding(learning, stuck, alike)


def _alike(each: Parameter) -> bool:
    if not each.alike or each.held is None or not each.trainable or not each.in_graph:
        return False
    return "Embedding" not in each.module and "Norm" not in each.module and sum(size > 1 for size in each.shape) > 1


def _looked(each: Parameter) -> bool:
    """It had its chance: its gradients were looked at, and moved all rows alike, or were none at all."""
    if len(each.grads) < STEPS:
        return False
    return each.moved or each.zero == each.seen - each.none


def _finding(learning: Learning, stuck: list[Parameter], alike: list[Parameter]) -> Finding:
    first = stuck[0]
    zero = all(each.alike == "zero" for each in stuck)
    site = learning.first_weights or (learning.built[0].site if learning.built else None)
    value = "0" if zero else "the same"
    still = (
        f"after {len(first.grads)} steps looked at they are still alike: every unit gets the same gradient"
        if any(each.moved for each in stuck)
        else f"in {first.seen} steps looked at their gradient was exactly 0"
    )
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"all units of {layers(stuck, 2)} have the same weights, and stay so",
        evidence=(
            f"all {first.shape[0]} rows of {first.name or list(first.shape)} were {value} at the start"
            + (f", and so it is in {len(alike)} matrices: {layers(alike, 6)}" if len(alike) > 1 else ""),
            still,
        ),
        where=where(learning, site),
        fix=Fix(
            f"Give the weights random first values (`nn.init.kaiming_uniform_`, or leave the layer's own) instead of "
            f"one for all ({line(learning.first_weights)})."
            if learning.first_weights
            else "Give the weights random first values (`nn.init.kaiming_uniform_`, or leave the layer's own)."
        ),
        seen_by="flight",
    )


RULE = Rule(
    "symmetric-weights",
    "numerics",
    decide,
    explains=frozenset(("vanishing-gradient", "no-better-than-constant", "dead-units")),
    gathers=True,
)
