"""dead-units: the ReLU units of a layer output 0 for every sample.

What it sees
    A ReLU most of whose units gave 0 for every sample of all the recent batches that were read.

Why it matters
    A unit that outputs 0 for everything gets no gradient and stays that way. Where a whole layer is dead, no layer
    before it trains any more, and the model gives the same output for everything.

Evidence
    The layer, how many of its units were 0 over how many batches, and how many were alive at first.

Fix
    A smaller learning rate, scaled inputs, or an activation with a slope below 0 (LeakyReLU, GELU).

When it is wrong
    Layers that are sparse by design. Short of a whole layer this is a warning, and only where hardly anything is left.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Activation, Learning
from unstuck.rules.rule import Rule
from unstuck.rules.training import layer_of, loss_site, where

MIN_BATCHES = 30  # the recorder keeps the last 25 to 50
MIN_BATCHES_NEVER_ALIVE = 10  # where no unit of the layer has ever been alive
MIN_DEAD_SHARE = 0.9  # of a layer's units
MIN_UNITS = 8  # of a narrower layer all must be dead


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        if any(loss.nonfinite for loss in learning.losses):
            continue  # NaN looks dead
        dead = [layer for layer in learning.activations if _mostly_dead(layer) or _wholly_dead(layer, learning)]
        if dead:
            yield _finding(learning, max(dead, key=lambda layer: (layer.late_dead / layer.units, -layer.place)))


def _mostly_dead(layer: Activation) -> bool:
    if layer.kind != "relu" or layer.units < MIN_UNITS or layer.late_batches < MIN_BATCHES or layer.gated:
        return False
    return layer.late_dead > MIN_DEAD_SHARE * layer.units


def _wholly_dead(layer: Activation, learning: Learning) -> bool:
    """However narrow: every unit is dead and its layer gets no gradient, while others still do."""
    if layer.kind != "relu" or not layer.units or layer.late_dead != layer.units or not layer.name:
        return False
    if layer.late_batches < (MIN_BATCHES_NEVER_ALIVE if layer.dead == layer.units else MIN_BATCHES):
        return False
    last = [(layer_of(p) == layer.name, p.grads[-1][1]) for p in learning.parameters if p.grads]
    own, others = [norm for mine, norm in last if mine], [norm for mine, norm in last if not mine]
    return bool(own) and not any(own) and any(others)


def _finding(learning: Learning, layer: Activation) -> Finding:
    whole = layer.late_dead == layer.units
    name = f"`{layer.name}`" if layer.name else f"ReLU {layer.place + 1} of the forward pass"
    died = layer.late_dead - layer.dead
    return RULE.finding(
        severity="error" if whole else "warning",
        confidence=0.9 if whole else 0.7,
        title=f"{layer.late_dead} of {layer.units} ReLU units after {name} are dead",
        evidence=(
            f"{layer.late_dead} of {layer.units} units after {name} output 0 for every sample of the last "
            f"{layer.late_batches} batches read",
            f"{died} of them were alive at first" if died else "they have been dead from the start",
        ),
        where=where(learning, layer.site or loss_site(learning)),
        fix="Lower the learning rate, scale the inputs, or use LeakyReLU or GELU, which pass a gradient below 0 too."
        if died
        else "Check how this layer is initialized (a large negative bias, weights of one sign) and the scale of its "
        "inputs; LeakyReLU or GELU pass a gradient below 0 too.",
    )


RULE = Rule("dead-units", "numerics", decide, explains=frozenset(("vanishing-gradient",)), gathers=True)
