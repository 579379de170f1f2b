"""symmetric-weights: every unit of a layer has the same weights, and they can never become different.

What it sees
    Weight matrices whose rows are all equal at the start, element by element, and still are after training steps; or
    their columns, where the script multiplies `x @ w` itself.

Why it matters
    Units with the same weights get the same gradient: a layer of many units stays a layer of one. With all zeros there
    is no gradient at all.

Evidence
    The layers, how many rows are equal, and that they still were after how many steps.

Fix
    Start with random weights (the layer's default, or kaiming/xavier); constants are for biases and norms.

When it is wrong
    Matrices that start at 0 by design (the second half of a LoRA, the last layer of a block) become different with the
    first steps, and are not reported; nor are embeddings and whatever is not trained.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning, Parameter
from unstuck.rules.rule import Rule
from unstuck.rules.training import layer_names, line, where

MIN_STEPS = 8  # of the training, and gradients read


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        equal = [parameter for parameter in learning.parameters if _rows_equal(parameter)]
        alike = [parameter for parameter in equal if parameter.still_alike or parameter.columns_alike]
        stuck = [parameter for parameter in alike if _had_its_chance(parameter)]
        if stuck and learning.steps >= MIN_STEPS:
            yield _finding(learning, stuck, equal)


def _rows_equal(parameter: Parameter) -> bool:
    owned = parameter.held is not None or parameter.owner is not None
    if not parameter.alike or not owned or not parameter.trainable or not parameter.in_graph:
        return False
    if "Embedding" in parameter.module or "Norm" in parameter.module:
        return False
    return sum(size > 1 for size in parameter.shape) > 1


def _had_its_chance(parameter: Parameter) -> bool:
    """Its gradients were read, and moved all rows alike, or were exactly 0."""
    if len(parameter.grads) < MIN_STEPS:
        return False
    return parameter.moved or parameter.zero == parameter.seen - parameter.none


def _finding(learning: Learning, stuck: list[Parameter], equal: list[Parameter]) -> Finding:
    first = stuck[0]
    units = f"{first.shape[0]} rows" if first.still_alike else f"{first.shape[-1]} columns"
    value = "0" if all(parameter.alike == "zero" for parameter in stuck) else "equal"
    site = learning.first_weights or (learning.built[0].site if learning.built else None)
    set_at = f", not a constant ({line(learning.first_weights)})" if learning.first_weights else ""
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"All units of {layer_names(stuck, 2)} have the same weights, and always will",
        evidence=(
            f"all {units} of {first.name or list(first.shape)} were {value} at the start"
            + (f", as in {len(equal)} matrices: {layer_names(equal, 6)}" if len(equal) > 1 else ""),
            f"after {len(first.grads)} steps they are still equal: every unit gets the same gradient"
            if any(parameter.moved for parameter in stuck)
            else f"in {first.seen} steps their gradient was exactly 0",
        ),
        where=where(learning, site),
        fix=f"Initialize the weights at random (`nn.init.kaiming_uniform_`, or the layer's default){set_at}.",
    )


RULE = Rule(
    "symmetric-weights",
    "numerics",
    decide,
    explains=frozenset(("vanishing-gradient", "dead-units")),
    gathers=True,
)
