"""vanishing-gradient: the gradient all but disappears on its way back to the first layers.

What it sees
    From the start on and to the end, the gradient of the first weight matrix is less than a thousandth of that of the
    last layer, over four matrices or more; and the loss does not fall, or stands where a constant answer would be.

Why it matters
    The first layers do not move, so what reaches the last ones stays noise: the net learns how frequent each answer is,
    and nothing of the input.

Evidence
    Norms of the gradients from the last layer to the first, their ratio, by how much the first layer moved, and the
    course of the loss.

Fix
    Activations whose slope is not small everywhere (ReLU, GELU) with an initialisation that fits them, or normalisation
    and residual connections between the layers.

When it is wrong
    Embeddings, layers without any gradient (dead units, cut graphs) and recurrent cells are left out. So is a first
    layer whose bias gets its gradient: there it is the input that is too small. A net that learns all the same is not
    reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Activation, Learning, Loss, Parameter
from unstuck.rules.learning.measured import layer_of, loss_scale, main_loss, median_gradient, owned, where
from unstuck.rules.rule import Rule

RATIO = 1e-3
"""Of the last layer's gradient, that the first one gets."""
ARRIVES = 0.03
"""Of the last layer's gradient: where the first layer's bias gets so much, nothing vanished on the way."""
LAYERS = 4
"""Weight matrices between the two."""
READINGS = 8
"""Of the gradient, at the start and at the end."""
STEPS = 60
"""Of the training."""
FALLS = 0.07
"""Of its value after the first fifth: a loss that falls more than this by the end is learning."""
CONSTANT = 0.85
"""Of the loss of the best constant answer: below that something of the input was learned."""
RECURRENT = ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell")
_BOUNDED = ("sigmoid", "tanh")


@dataclass(frozen=True)
class Fall:
    """Of the gradient, from the last layer (`matrices[0]`) to the first."""

    matrices: list[Parameter]
    top: float
    ratio: float


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or loss.nonfinite or len(learning.losses) > 1 or learning.steps < STEPS:
            continue
        if loss_scale(learning) is not None or learning.compiled:
            continue
        fall = _fall(learning)
        if fall is not None and _stuck(learning, loss):
            yield _finding(learning, loss, fall)


def _fall(learning: Learning) -> Fall | None:
    """Parameters come in the order in which the graph of the loss reaches them."""
    used = [each for each in owned(learning) if _gets_gradients(each)]
    matrices = [each for each in used if _is_matrix(each)]
    if len(matrices) < LAYERS or any(p.module in RECURRENT for p in used):
        return None
    first, last = matrices[-1], [p for p in used if layer_of(p) == layer_of(matrices[0])]
    ratio = max(_ratio(first, last, slice(0, READINGS)), _ratio(first, last, slice(-READINGS, None)))
    if first.zero * 2 > first.seen or ratio >= RATIO or _arrives(used, matrices, last):
        return None
    return Fall(matrices, max(median_gradient(p) for p in last), ratio)


def _is_matrix(each: Parameter) -> bool:
    return len(each.shape) >= 2 and "Embedding" not in each.module and each.numel > 1


def _gets_gradients(each: Parameter) -> bool:
    return bool(each.in_graph and len(each.grads) >= READINGS and not each.none and each.requires)


def _ratio(first: Parameter, last: list[Parameter], part: slice) -> float:
    top = max(_norm(p, part) for p in last)
    return _norm(first, part) / top if top > 0 else 1.0


def _arrives(used: list[Parameter], matrices: list[Parameter], last: list[Parameter]) -> bool:
    """The gradient comes down to the first layer; only its matrix gets none, because its input is next to nothing."""
    layer = layer_of(matrices[-1])  # without a name it is not known which bias is its own
    near = [p for p in used if layer and layer_of(p) == layer and len(p.shape) == 1] or matrices[-2:-1]
    whole = slice(None)
    return max(_norm(p, whole) for p in near) >= ARRIVES * max(_norm(p, whole) for p in last)


def _norm(parameter: Parameter, part: slice) -> float:
    return median(norm for _, norm in parameter.grads[part])


def _stuck(learning: Learning, loss: Loss) -> bool:
    """The loss falls no more after its first steps; where the loss of a constant answer is known, it stands there."""
    values = [value for _, value in loss.points]
    if len(values) < 20:
        return False
    fifth = len(values) // 5
    begin, end = sum(values[fifth : 2 * fifth]) / fifth, sum(values[-fifth:]) / fifth
    if begin <= 0 or end < begin * (1 - FALLS):
        return False
    for head in learning.heads:
        best = head.target.constant
        if head.bare and best and end < CONSTANT * best:
            return False
    return True


def _finding(learning: Learning, loss: Loss, fall: Fall) -> Finding:
    first = fall.matrices[-1]
    name = first.name or f"the first layer, of shape {list(first.shape)}"
    ratio = fall.top / median_gradient(first) if median_gradient(first) else float("inf")
    bounded = _bounded(learning)
    return RULE.finding(
        severity="error",
        confidence=0.9,
        title=f"The gradient vanishes: at {name} it is {ratio:,.0f} times smaller than at the last layer",
        evidence=tuple(_evidence(learning, loss, fall, bounded)),
        where=where(learning, loss.site),
        fix=Fix(
            (
                f"Use ReLU or GELU in place of {bounded[0].kind} between the layers"
                if bounded
                else "Use an initialisation that keeps the signal's size (`kaiming_normal_` for ReLU)"
            )
            + ", or put normalisation and residual connections between them."
        ),
        seen_by="flight",
    )


def _bounded(learning: Learning) -> list[Activation]:
    return [each for each in learning.activations if each.kind in _BOUNDED]


def _evidence(learning: Learning, loss: Loss, fall: Fall, bounded: list[Activation]) -> Iterable[str]:
    chosen = fall.matrices[:: max(1, (len(fall.matrices) - 1) // 4)]
    if chosen[-1] is not fall.matrices[-1]:
        chosen = [*chosen, fall.matrices[-1]]
    norms = ", ".join(f"{p.name or list(p.shape)} {median_gradient(p):.2g}" for p in chosen)
    yield f"median norms of the gradients, from the last layer to the first: {norms}"
    first = fall.matrices[-1]
    yield (
        f"over {len(first.grads)} readings the first of {len(fall.matrices)} matrices never had more than "
        f"{fall.ratio:.1g} of the last layer's gradient (median at the start and at the end)"
    )
    if first.moves and first.weights and first.weights[0] > 0:
        moved = median(move for _, move in first.moves) / first.weights[0]
        yield f"an update moves {first.name or 'it'} by {moved:.1g} of its norm at the median"
    if bounded:
        kinds = {each.kind for each in bounded}
        yield f"{len(bounded)} {'/'.join(sorted(kinds))} activations lie between, each with its slope"
    values = [value for _, value in loss.points]
    fifth = len(values) // 5
    yield (
        f"the loss stands: {sum(values[fifth : 2 * fifth]) / fifth:.4g} after the first fifth of {learning.steps:,} "
        f"steps, {sum(values[-fifth:]) / fifth:.4g} in the last"
    )


RULE = Rule(
    "vanishing-gradient",
    "numerics",
    decide,
    explains=frozenset(("no-better-than-constant", "predicts-one-class", "learning-rate-too-low", "still-improving")),
    gathers=True,
)
