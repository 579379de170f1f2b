"""saturated-units: sigmoids or tanhs are driven so far that they are flat.

What it sees
    A sigmoid or tanh inside the model most of whose inputs lie where it hardly changes any more (beyond ±5 and ±3),
    from the first batches on.

Why it matters
    Where an activation is flat its gradient is almost 0: the layers before it learn very slowly or not at all.

Evidence
    The layer, the share of its values that are flat in the first batches and recently, and how the loss went.

Fix
    Scale the inputs to about 1, start with smaller weights, put a normalization before the activation, or use ReLU.

When it is wrong
    Gates (a result that is multiplied with another one) and the last activation before the loss are meant to be driven
    far, and are left out; so are units that become flat only as the training goes on.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Activation, Learning
from unstuck.rules.rule import Rule
from unstuck.rules.training import course, is_saturated, layer_of, loss_site, main_loss, median_gradient, where

SMALL_GRADIENT = 1e-3  # compared with the weight: worth a line of evidence


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        last = max((activation.place for activation in learning.activations), default=-1)
        is_output = any(
            head.after in ("sigmoid", "tanh") or head.op in ("bce", "bce_logits") for head in learning.heads
        )
        flat = [
            activation
            for activation in learning.activations
            if is_saturated(activation) and not (is_output and activation.place == last)
        ]
        if flat:
            yield _finding(learning, max(flat, key=lambda activation: activation.late_saturated))


def _finding(learning: Learning, activation: Activation) -> Finding:
    kind, name = activation.kind, activation.name
    layer = f"`{name}`" if name else f"activation {activation.place + 1} of the forward pass"
    loss = main_loss(learning)
    return RULE.finding(
        severity="warning",
        confidence=0.75,
        title=f"The {kind} after {layer} is flat for {activation.late_saturated:.0%} of its values",
        evidence=(
            f"{activation.early_saturated:.0%} of the inputs of the {kind} after {layer} were beyond "
            f"±{5 if kind == 'sigmoid' else 3} in the first batches, and {activation.late_saturated:.0%} recently "
            f"({activation.batches} batches read)",
            _gradient(learning, name),
            course(loss) if loss is not None and loss.count and not loss.nonfinite else "",
        ),
        where=where(learning, activation.site or loss_site(learning)),
        fix="Scale the inputs of that layer to about 1 (or put a LayerNorm before it), or start with smaller weights.",
    )


def _gradient(learning: Learning, layer: str) -> str:
    for parameter in learning.parameters:
        if layer and layer_of(parameter) == layer and len(parameter.shape) > 1 and any(parameter.weights[:1]):
            ratio = median_gradient(parameter) / parameter.weights[0]
            if ratio < SMALL_GRADIENT:
                return f"the gradient of `{parameter.name}` is {ratio:.1e} of the size of its weights"
    return ""


RULE = Rule("saturated-units", "numerics", decide, explains=frozenset(("vanishing-gradient",)), gathers=True)
