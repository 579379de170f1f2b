"""vanishing-gradient: the gradient all but disappears on its way back to the first layers.

What it sees
    From the start to the end of the run, the gradient of the first weight matrix is less than a thousandth of the last
    layer's, over four matrices or more; and the loss does not fall, or stays where a constant prediction would be.

Why it matters
    The first layers do not move, so what reaches the last ones stays noise: the net learns how frequent each answer is,
    and nothing from the input.

Evidence
    Gradient norms from the last layer to the first, their ratio, how far the first layer moved, and the loss.

Fix
    Activations whose slope is not small everywhere (ReLU, GELU) with an initialization that fits them, or normalization
    and residual connections between the layers.

When it is wrong
    Embeddings, layers without any gradient (dead units, cut graphs) and recurrent cells are left out. So is a first
    layer whose bias gets its gradient: there the input is too small; and a branch of the loss that does not come
    through the last layer, as that of an actor next to a critic. A net that learns all the same is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning, Loss, Parameter
from unstuck.rules.numerics.nan_causes import loss_scale
from unstuck.rules.rule import Rule
from unstuck.rules.training import curve, layer_of, main_loss, median_gradient, optimized, where

MAX_RATIO = 1e-3  # of the last layer's gradient that the first one gets
ARRIVING_RATIO = 0.03  # where the first layer's bias gets so much, nothing vanished on the way
MIN_MATRICES = 4
MIN_READINGS = 8  # of the gradient, at the start and at the end
MIN_STEPS = 60
MIN_LOSS_POINTS = 20
LEARNING_FALL = 0.07  # of the loss after the first fifth: one that falls more by the end is learning
LEARNED_SHARE = 0.85  # of the best constant prediction's loss: below that something was learned from the input
RECURRENT = ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell")
WHOLE = slice(None)


@dataclass(frozen=True)
class Decline:
    """Of the gradient, from the last layer (`matrices[0]`) to the first."""

    matrices: list[Parameter]
    top: float
    ratio: float


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or loss.nonfinite or len(learning.losses) > 1 or learning.steps < MIN_STEPS:
            continue
        if loss_scale(learning) is not None or learning.compiled:
            continue
        decline = _decline(learning)
        if decline is not None and _learns_nothing(learning, loss):
            yield _finding(learning, loss, decline)


def _decline(learning: Learning) -> Decline | None:
    """Parameters come in the order in which the graph of the loss reaches them. In a branch beside the last layer
    (an actor next to a critic) a gradient is small because that part of the loss is."""
    used = [parameter for parameter in optimized(learning) if _gets_gradients(parameter)]
    matrices = [p for p in used if len(p.shape) >= 2 and "Embedding" not in p.module and p.numel > 1]
    if len(matrices) < MIN_MATRICES or any(parameter.module in RECURRENT for parameter in used):
        return None
    first, last = matrices[-1], [p for p in used if layer_of(p) == layer_of(matrices[0])]
    parts = slice(0, MIN_READINGS), slice(-MIN_READINGS, None)
    ratio = max(_norm(first, part) / top if (top := _top(last, part)) > 0 else 1.0 for part in parts)
    if first.zero * 2 > first.seen or ratio >= MAX_RATIO or _arrives(used, matrices, last):
        return None
    return Decline(matrices, max(median_gradient(parameter) for parameter in last), ratio)


def _gets_gradients(parameter: Parameter) -> bool:
    enough = len(parameter.grads) >= MIN_READINGS
    return bool(parameter.in_graph and not parameter.beside and enough and not parameter.none and parameter.requires)


def _arrives(used: list[Parameter], matrices: list[Parameter], last: list[Parameter]) -> bool:
    """The gradient reaches the first layer; only its matrix gets none, because its input is tiny."""
    layer = layer_of(matrices[-1])  # without a name it is not known which bias is its own
    near = [p for p in used if layer and layer_of(p) == layer and len(p.shape) == 1] or matrices[-2:-1]
    return _top(near, WHOLE) >= ARRIVING_RATIO * _top(last, WHOLE)


def _top(parameters: list[Parameter], part: slice) -> float:
    return max(_norm(parameter, part) for parameter in parameters)


def _norm(parameter: Parameter, part: slice) -> float:
    return median(norm for _, norm in parameter.grads[part])


def _learns_nothing(learning: Learning, loss: Loss) -> bool:
    """The loss stays where it is after its first steps; at a constant prediction's, where that is known."""
    if len(loss.points) < MIN_LOSS_POINTS:
        return False
    begin, end = _second_and_last_fifth(loss)
    if begin <= 0 or end < begin * (1 - LEARNING_FALL):
        return False
    constants = (head.target.constant for head in learning.heads if head.bare)
    return not any(constant and end < LEARNED_SHARE * constant for constant in constants)


def _second_and_last_fifth(loss: Loss) -> tuple[float, float]:
    values = curve(loss)
    fifth = len(values) // 5
    return fmean(values[fifth : 2 * fifth]), fmean(values[-fifth:])


def _finding(learning: Learning, loss: Loss, decline: Decline) -> Finding:
    first, norms = decline.matrices[-1], _chosen_norms(decline.matrices)
    name = first.name or f"the first layer, of shape {list(first.shape)},"
    times = decline.top / median_gradient(first) if median_gradient(first) else float("inf")
    bounded = [activation.kind for activation in learning.activations if activation.kind in ("sigmoid", "tanh")]
    begin, end = _second_and_last_fifth(loss)
    moved = ""
    if first.moves and first.weights and first.weights[0] > 0:
        share = median(move for _, move in first.moves) / first.weights[0]
        moved = f"an update moves {first.name or 'it'} by {share:.1g} of its norm (median)"
    instead = (
        f"Use ReLU or GELU instead of {bounded[0]} between the layers"
        if bounded
        else "Use an initialization that keeps the signal's size (`kaiming_normal_` for ReLU)"
    )
    return RULE.finding(
        severity="error",
        confidence=0.9,
        title=f"The gradient vanishes: at {name} it is {times:,.0f} times smaller than at the last layer",
        evidence=(
            f"median gradient norms, from the last layer to the first: {norms}",
            f"over {len(first.grads)} readings the first of {len(decline.matrices)} matrices never had more than "
            f"{decline.ratio:.1g} of the last layer's gradient (median at the start and at the end)",
            moved,
            f"{len(bounded)} {'/'.join(sorted(set(bounded)))} activations lie between them" if bounded else "",
            f"the loss does not fall: {begin:.4g} after the first fifth of {learning.steps:,} steps, {end:.4g} in the "
            "last",
        ),
        where=where(learning, loss.site),
        fix=f"{instead}, or put normalization and residual connections between them.",
    )


def _chosen_norms(matrices: list[Parameter]) -> str:
    """Of five or so."""
    chosen = matrices[:: max(1, (len(matrices) - 1) // 4)]
    if chosen[-1] is not matrices[-1]:
        chosen = [*chosen, matrices[-1]]
    return ", ".join(f"{matrix.name or list(matrix.shape)} {median_gradient(matrix):.2g}" for matrix in chosen)


RULE = Rule(
    "vanishing-gradient",
    "numerics",
    decide,
    explains=frozenset(("predicts-one-class", "learning-rate-too-low")),
    gathers=True,
)
