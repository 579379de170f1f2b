"""dead-units: a layer whose units answer 0 to every sample.

What it sees
    A ReLU most of whose units gave 0 for every sample of all batches looked at lately.

Why it matters
    A unit that gives 0 for everything gets no gradient and stays so. Where a whole layer is dead, nothing in front of
    it is trained any more, and the model gives the same answer to everything.

Evidence
    The layer, how many of its units were 0 over how many batches, and how many were alive at first.

Fix
    A smaller learning rate, scaled inputs, or an activation with a slope below 0 (LeakyReLU, GELU).

When it is wrong
    Layers that are sparse by design. Short of a whole layer this is a warning only where nearly nothing is left, or
    units died on the way.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Activation, Learning
from unstuck.rules.learning.measured import layer_of, main_loss, where
from unstuck.rules.rule import Rule

BATCHES = 30
"""Looked at; the recorder keeps the last 25 to 50."""
AT_ONCE = 10
"""… where no unit of a layer has ever been alive."""
SHARE = 0.9
"""Of a layer's units."""
UNITS = 8
"""Of a narrower layer all must be dead."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        if any(loss.nonfinite for loss in learning.losses):
            continue  # what is no number looks dead
        dead = [each for each in learning.activations if _dead(each) or _cut_off(each, learning)]
        if dead:
            yield _finding(learning, max(dead, key=lambda each: (each.late_dead / each.units, -each.place)))


def _dead(each: Activation) -> bool:
    if each.kind != "relu" or each.units < UNITS or each.late_batches < BATCHES or each.gated:
        return False
    return each.late_dead > SHARE * each.units


def _cut_off(each: Activation, learning: Learning) -> bool:
    """However narrow: every unit is dead, so that its layer gets nothing, while what comes after it still learns."""
    if each.kind != "relu" or not each.units or each.late_dead != each.units or not each.name:
        return False
    if each.late_batches < (AT_ONCE if each.dead == each.units else BATCHES):
        return False
    last = [(layer_of(p) == each.name, p.grads[-1][1]) for p in learning.parameters if p.grads]
    behind, others = ([norm for own, norm in last if own is wanted] for wanted in (True, False))
    return bool(behind) and not any(behind) and any(others)


def _finding(learning: Learning, each: Activation) -> Finding:
    whole = each.late_dead == each.units
    layer = f"`{each.name}`" if each.name else f"ReLU {each.place + 1} of the forward pass"
    died = each.late_dead - each.dead
    loss = main_loss(learning)
    how = f"{died} of them were alive at first" if died else "they have been so from the start"
    return RULE.finding(
        severity="error" if whole else "warning",
        confidence=0.9 if whole else 0.7,
        title=f"{each.late_dead} of {each.units} units behind {layer} are dead",
        evidence=(
            f"the ReLU behind {layer} gave 0 for every sample of the last {each.late_batches} batches looked at, in "
            f"{each.late_dead} of its {each.units} units",
            how,
        ),
        where=where(learning, each.site or (loss.site if loss is not None else None)),
        fix=Fix(
            "Lower the learning rate, scale the inputs, or use LeakyReLU or GELU, which pass a gradient below 0 too."
            if died
            else "Look at how this layer begins (a large negative bias, weights of one sign) and at the scale of its "
            "inputs; LeakyReLU or GELU pass a gradient below 0 too."
        ),
        seen_by="flight",
    )


RULE = Rule(
    "dead-units",
    "numerics",
    decide,
    explains=frozenset(("vanishing-gradient", "no-better-than-constant", "still-improving")),
    gathers=True,
)
