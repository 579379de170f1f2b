"""Plain questions to what was measured of a training, for every rule that asks them."""

from __future__ import annotations

from statistics import median

from unstuck.model import Where
from unstuck.recorder.records import Site
from unstuck.recorder.records.learning import Activation, Learning, Loss, LossHead, Parameter

FLAT_BATCHES = 12
"""Batches looked at before a share of flat values means something."""
FLAT_SHARE = 0.5
"""Of an activation's values."""


def where(learning: Learning, site: Site | None, *, step: int | None = None, sample: int | None = None) -> Where:
    file, line, function = site or (None, None, None)
    step = learning.steps if step is None else step
    return Where(file=file, line=line, function=function, pid=learning.pid, step=step, sample=sample)


def main_loss(learning: Learning) -> Loss | None:
    """The loss that is computed most often."""
    return max(learning.losses, key=lambda loss: loss.count, default=None)


def loss_site(learning: Learning) -> Site | None:
    """The line that calls backward on it."""
    loss = main_loss(learning)
    return loss.site if loss is not None else None


def loss_of(learning: Learning, head: LossHead) -> Loss | None:
    """The loss whose graph ends in it."""
    return next((loss for loss in learning.losses if loss.site == head.called), None)


def loss_scale(learning: Learning) -> float | None:
    """Of its GradScaler; None: it has none in use."""
    return learning.scaler.scale if learning.scaler is not None else None


def owned(learning: Learning) -> list[Parameter]:
    """Parameters of an optimizer that has stepped."""
    return [parameter for parameter in learning.parameters if parameter.owner is not None]


def layer_of(parameter: Parameter) -> str:
    return parameter.name.rpartition(".")[0]


def update_ratios(parameter: Parameter) -> list[float]:
    """Size of the update compared with the weight, a sampled step each."""
    return [m / w for (_, m), w in zip(parameter.moves, parameter.weights, strict=False) if w > 0]


def median_gradient(parameter: Parameter) -> float:
    """Of the norms that were read."""
    return median(norm for _, norm in parameter.grads) if parameter.grads else 0.0


def saturated(activation: Activation) -> bool:
    """A sigmoid or tanh, no gate, that was flat for most of its values from the first batches on."""
    if activation.kind not in ("sigmoid", "tanh") or activation.gated or activation.batches < FLAT_BATCHES:
        return False
    return min(activation.early_saturated, activation.late_saturated, activation.saturated) > FLAT_SHARE
